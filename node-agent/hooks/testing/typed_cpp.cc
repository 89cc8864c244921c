// SPDX-License-Identifier: Apache-2.0
// Methods, references, and classes that are passed in different ways. See typed.c.
namespace typed {

class Kept {
 public:
  explicit Kept(int number) : number_(number) {}
  Kept(const Kept& other) : number_(other.number_ + 1) {}
  ~Kept() {}
  __attribute__((noinline, visibility("default"))) int Number(const int& more) const;

 private:
  int number_;
};

int Kept::Number(const int& more) const { return number_ + more; }

__attribute__((noinline, visibility("default"))) Kept Make(long number);
Kept Make(long number) { return Kept(static_cast<int>(number)); }

struct Long {
  Kept kept{0};
  long more[4];
};
__attribute__((noinline, visibility("default"))) Long MakeLong(long number);
Long MakeLong(long number) { return {Kept(static_cast<int>(number)), {}}; }

struct Plain {
  int a;
};
__attribute__((noinline, visibility("default"))) Plain MakePlain(long number);
Plain MakePlain(long number) { return {static_cast<int>(number)}; }

}  // namespace typed
