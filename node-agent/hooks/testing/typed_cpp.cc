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

// Constructors and destructors of classes with a virtual base have versions with other arguments.
struct Base {
  int x;
  __attribute__((noinline, visibility("default"))) explicit Base(int number);
  __attribute__((noinline, visibility("default"))) ~Base();
};
Base::Base(int number) : x(number) {}
Base::~Base() { x = 0; }

struct Derived : virtual Base {
  int y;
  __attribute__((noinline, visibility("default"))) Derived(int a, long b);
  __attribute__((noinline, visibility("default"))) ~Derived();
};
Derived::Derived(int a, long b) : Base(a), y(static_cast<int>(b)) {}
Derived::~Derived() { x += y; }

}  // namespace typed
