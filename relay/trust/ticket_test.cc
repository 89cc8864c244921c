// SPDX-License-Identifier: Apache-2.0
#include "relay/trust/ticket.h"

#include <gtest/gtest.h>

namespace weft::relay_trust {
namespace {

using std::chrono::seconds;

class TicketTest : public testing::Test {
 protected:
  seconds now_{1000};
  std::array<uint8_t, kTicketKeyBytes> key_{1, 2, 3};
  TicketBook book_{key_, [this] { return now_; }};
};

TEST_F(TicketTest, IsGoodForItsNodeAndNamespaceOnly) {
  const std::string ticket = *book_.Issue("node-1", "shop");
  EXPECT_EQ(book_.Check("node-1", "shop", ticket), TicketFault::kNone);
  EXPECT_EQ(book_.Check("node-2", "shop", ticket), TicketFault::kWrong);
  EXPECT_EQ(book_.Check("node-1", "bank", ticket), TicketFault::kWrong);
  EXPECT_EQ(book_.Check("node-1s", "hop", ticket), TicketFault::kWrong);
  EXPECT_EQ(book_.Check("node-1", "shop", ""), TicketFault::kAbsent);
}

// The proof was computed by Python's hmac over the texts with their lengths before them.
TEST_F(TicketTest, HasItsGoldenText) {
  EXPECT_EQ(*book_.Issue("node-1", "shop"),
            "1600.22dbd5a23c81db786ba65e54296a74423f6f2f8ef3fac2cbaa0eda451a13fc82");
}

TEST_F(TicketTest, Expires) {
  const std::string ticket = *book_.Issue("node-1", "shop");
  now_ += kTicketLifetime - seconds(1);
  EXPECT_EQ(book_.Check("node-1", "shop", ticket), TicketFault::kNone);
  now_ += seconds(1);
  EXPECT_EQ(book_.Check("node-1", "shop", ticket), TicketFault::kExpired);
  // A later end needs another proof.
  EXPECT_EQ(book_.Check("node-1", "shop", "9" + ticket), TicketFault::kWrong);
}

TEST_F(TicketTest, OfAnotherRelayIsWrong) {
  key_[0]++;
  const TicketBook other(key_, [this] { return now_; });
  EXPECT_EQ(book_.Check("node-1", "shop", *other.Issue("node-1", "shop")), TicketFault::kWrong);
}

TEST_F(TicketTest, RefusesWhatIsNoTicket) {
  const std::string ticket = *book_.Issue("node-1", "shop");
  const std::string proof = ticket.substr(ticket.find('.'));
  for (const std::string& text :
       {std::string("."), std::string("1600"), std::string("1600."), "-1" + proof, " 1600" + proof,
        "1600x" + proof, "99999999999999999999" + proof, proof, ticket + "0",
        ticket.substr(0, ticket.size() - 1), std::string(10'000, '1')}) {
    EXPECT_EQ(book_.Check("node-1", "shop", text), TicketFault::kWrong) << text;
  }
}

TEST(TicketBook, MakesAKeyOfItsOwn) {
  const auto one = TicketBook::Make();
  const auto other = TicketBook::Make();
  const std::string ticket = *one->Issue("node-1", "shop");
  EXPECT_EQ(one->Check("node-1", "shop", ticket), TicketFault::kNone);
  EXPECT_EQ(other->Check("node-1", "shop", ticket), TicketFault::kWrong);
}

}  // namespace
}  // namespace weft::relay_trust
