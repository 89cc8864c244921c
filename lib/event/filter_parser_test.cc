// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lib/event/filter_compiler.h"

namespace weft {
namespace {

const char* Name(weft_filter_op op) {
  switch (op) {
    case WEFT_FILTER_OP_NEG:
      return "neg";
    case WEFT_FILTER_OP_PLUS:
      return "plus";
    case WEFT_FILTER_OP_NOT:
      return "not";
    case WEFT_FILTER_OP_BIT_NOT:
      return "compl";
    case WEFT_FILTER_OP_SHL:
      return "<<";
    case WEFT_FILTER_OP_SHR:
      return ">>";
    case WEFT_FILTER_OP_AND:
      return "&";
    case WEFT_FILTER_OP_XOR:
      return "^";
    case WEFT_FILTER_OP_OR:
      return "|";
    case WEFT_FILTER_OP_EQ:
      return "==";
    case WEFT_FILTER_OP_NE:
      return "!=";
    case WEFT_FILTER_OP_LT:
      return "<";
    case WEFT_FILTER_OP_LE:
      return "<=";
    case WEFT_FILTER_OP_GT:
      return ">";
    case WEFT_FILTER_OP_GE:
      return ">=";
    case WEFT_FILTER_OP_AND_ELSE:
      return "&&";
    case WEFT_FILTER_OP_OR_ELSE:
      return "||";
    default:
      return "?";
  }
}

// Returns the tree as an S-expression.
std::string Show(const FilterAst& ast, size_t index) {
  const FilterNode& node = ast.nodes[index];
  switch (node.kind) {
    case FilterNodeKind::kInt:
      return std::to_string(static_cast<int64_t>(node.integer));
    case FilterNodeKind::kFloat:
      return "f" + std::to_string(node.number);
    case FilterNodeKind::kString:
      return "\"" + node.text + "\"";
    case FilterNodeKind::kPattern:
      return "p\"" + node.text + "\"";
    case FilterNodeKind::kSymbol: {
      static constexpr const char* kKinds[] = {"", "", "$ctx.", "$app."};
      return kKinds[node.symbol.kind] + node.symbol.name +
             (node.symbol.has_index ? "#" + std::to_string(node.symbol.index) : "");
    }
    case FilterNodeKind::kUnary:
      return "(" + std::string(Name(node.op)) + " " + Show(ast, node.left) + ")";
    case FilterNodeKind::kBinary:
      break;
  }
  return "(" + std::string(Name(node.op)) + " " + Show(ast, node.left) + " " +
         Show(ast, node.right) + ")";
}

std::string Parsed(std::string_view expression) {
  const auto ast = ParseFilter(expression);
  return ast ? Show(*ast, ast->nodes.size() - 1) : ast.error().ToError(expression).message;
}

TEST(FilterParser, PrecedenceIsLttngs) {
  EXPECT_EQ(Parsed("a || b && c == d < e | f ^ g & h << -i"),
            "(|| a (&& b (== c (< d (| e (^ f (& g (<< h (neg i)))))))))");
  EXPECT_EQ(Parsed("!a << b & c ^ d | e < f == g && h || i"),
            "(|| (&& (== (< (| (^ (& (<< (not a) b) c) d) e) f) g) h) i)");
  EXPECT_EQ(Parsed("2 & 2 == 2"), "(== (& 2 2) 2)");
}

TEST(FilterParser, OperatorsGroupToTheLeft) {
  EXPECT_EQ(Parsed("a << b >> c"), "(>> (<< a b) c)");
  EXPECT_EQ(Parsed("a < b >= c"), "(>= (< a b) c)");
  EXPECT_EQ(Parsed("a == b != c"), "(!= (== a b) c)");
  EXPECT_EQ(Parsed("a || b || c"), "(|| (|| a b) c)");
  EXPECT_EQ(Parsed("a == (b != c)"), "(== a (!= b c))");
  EXPECT_EQ(Parsed("-+~!a"), "(neg (plus (compl (not a))))");
}

TEST(FilterParser, ReadsNumbers) {
  EXPECT_EQ(Parsed("0 || 10 || 0x1F || 017 || 0xffffffffffffffff"),
            "(|| (|| (|| (|| 0 10) 31) 15) -1)");
  EXPECT_EQ(Parsed("1u|2UL|3ull|4LU|5l"), "(| (| (| (| 1 2) 3) 4) 5)");
  EXPECT_EQ(Parsed("1.5 < .5 < 2. < 1e3 < 1.5e-1f < 0x1.8p1 < 0x2p-1"),
            "(< (< (< (< (< (< f1.500000 f0.500000) f2.000000) f1000.000000) f0.150000) f3.000000) "
            "f1.000000)");
}

TEST(FilterParser, ReadsStringsAndPatterns) {
  EXPECT_EQ(Parsed(R"(a == "x y")"), "(== a \"x y\")");
  EXPECT_EQ(Parsed(R"(a == 'say "x"')"), "(== a \"say \"x\"\")");
  EXPECT_EQ(Parsed(R"(a == "\"\\\*\t\x41")"), "(== a \"\"\\*\tA\")");
  EXPECT_EQ(Parsed(R"(a == "b*")"), "(== a p\"b*\")");
  EXPECT_EQ(Parsed(R"(a == "**b***c\*\\d**")"), "(== a p\"*b*c\\*\\\\d*\")");
  EXPECT_EQ(Parsed(R"(a == "")"), "(== a \"\")");
}

TEST(FilterParser, ReadsNames) {
  EXPECT_EQ(Parsed("msg.user[1].data[2][17]"), "msg.user[1].data[2]#17");
  EXPECT_EQ(Parsed("a [ 0x10 ] . b"), "a[16].b");
  EXPECT_EQ(Parsed("$ctx.vpid"), "$ctx.vpid");
  EXPECT_EQ(Parsed("$ctx.perf:thread:cycles"), "$ctx.perf:thread:cycles");
  EXPECT_EQ(Parsed("$app.server:cur_user"), "$app.server:cur_user");
  EXPECT_EQ(Parsed("$ctx.a.b[1]"), "$ctx.a.b[1]");
}

TEST(FilterParser, PassesOverBlanksAndComments) {
  EXPECT_EQ(Parsed(" a\t/* == 1 */ ==\n// two\n 2 "), "(== a 2)");
  EXPECT_EQ(Parsed("a==2//"), "(== a 2)");
}

struct Wrong {
  const char* expression;
  size_t column;
  const char* message;
};

constexpr Wrong kWrong[] = {
    {"", 1, "expected an operand, not the end"},
    {"a == ", 6, "expected an operand, not the end"},
    {"a == 1)", 7, "this ) closes nothing"},
    {"(a == 1", 1, "this ( is never closed"},
    {"a b", 3, "expected an operator, not 'b'"},
    {"a = 1", 3, "equality is written =="},
    {"a->b == 1", 2, "members are written with a dot"},
    {"a * 2 == 4", 3, "arithmetic (*) is not part of the filter language; bit operators are"},
    {"a - 1", 3, "arithmetic (-) is not part of the filter language; bit operators are"},
    {"a + 1", 3, "arithmetic (+) is not part of the filter language; bit operators are"},
    {"(a / 1)", 4, "arithmetic (/) is not part of the filter language; bit operators are"},
    {"a % 1", 3, "arithmetic (%) is not part of the filter language; bit operators are"},
    {"a && && b", 6, "expected an operand, not '&&'"},
    {"a[b] == 1", 3, "an index is a constant integer, not 'b'"},
    {"a[-1] == 1", 3, "an index is a constant integer, not '-'"},
    {"a[1 == 1", 5, "expected ], not '=='"},
    {"a. == 1", 4, "expected a field's name, not '=='"},
    {"a:b == 1", 1, "a field's name has no ':' (contexts are $ctx.name and $app.provider:name)"},
    {"$foo.bar", 1, "unknown '$foo' (there are $ctx and $app)"},
    {"$ctx", 5, "a context is written $ctx.name"},
    {"$app.name", 6, "a context is written $app.provider:name"},
    {"$ctx.a->b", 7, "members are written with a dot"},
    {"a == \"x", 6, "the string has no closing \""},
    {"a == \"x\\q\"", 8, "unknown escape (write \\\\ for a backslash, \\* for a star)"},
    {"a == \"\\x00\"", 7, "unknown escape (write \\\\ for a backslash, \\* for a star)"},
    {"a == 08", 6, "'08' is no number"},
    {"a == 5abc", 6, "'5abc' is no number"},
    {"a == 1.2.3", 6, "'1.2.3' is no number"},
    {"a == 18446744073709551616", 6, "'18446744073709551616' needs more than 64 bits"},
    {"a == 1 /* b", 8, "the comment has no end"},
    {"a == 1 # 2", 8, "this character has no meaning here"},
    // The compiler finds the errors from here on: types, as far as literals tell.
    {"\"x\"", 1, "a string alone is no condition"},
    {"a && 'x'", 6, "a string alone is no condition; compare it with =="},
    {"!\"x\"", 2, "a string alone is no condition; compare it with =="},
    {"-\"x\" == 1", 2, "a string is no number"},
    {"a == 1 == \"x\"", 8, "a string is compared to a number"},
    {"a < \"x\"", 3, "strings are compared with == and != only"},
    {"\"a*\" == \"*b\"", 6,
     "two patterns are compared; write one as a plain string, or both with a star at their end "
     "only"},
    {"\"a*b\" == \"a*\"", 7,
     "two patterns are compared; write one as a plain string, or both with a star at their end "
     "only"},
    {"\"a*\" < \"ab*\"", 6, "strings are compared with == and != only"},
    {"a & 1.5", 5, "bit operators take integers only"},
    {"~1.5", 2, "bit operators take integers only"},
    {"(a & \"x\") == 1", 6, "a string is no number"},
};

TEST(FilterParser, ErrorsPointAtTheirColumn) {
  for (const Wrong& wrong : kWrong) {
    const auto program = CompileFilter(wrong.expression);
    ASSERT_FALSE(program.has_value()) << wrong.expression;
    EXPECT_EQ(program.error().message, wrong.message) << wrong.expression;
    EXPECT_EQ(program.error().Place(wrong.expression), "column " + std::to_string(wrong.column))
        << wrong.expression;
  }
}

TEST(FilterError, ACaretStandsUnderThePlace) {
  const std::string_view expression =
      "name == \"Gr\xc3\xb6\xc3\x9f"
      "e\" &&\tid * 2";
  const auto ast = ParseFilter(expression);
  ASSERT_FALSE(ast.has_value());
  EXPECT_EQ(ast.error().ToError(expression).message,
            "filter, column 25: arithmetic (*) is not part of the filter language; bit operators "
            "are");
  EXPECT_EQ(ast.error().ToError(expression).code, ErrorCode::kInvalid);
  EXPECT_EQ(ast.error().Excerpt(expression),
            "  name == \"Gr\xc3\xb6\xc3\x9f"
            "e\" && id * 2\n"
            "                        ^\n");
  EXPECT_EQ(FilterError({.offset = 4, .size = 3}).Excerpt("a < \"x\""), "  a < \"x\"\n      ^~~\n");
}

TEST(FilterError, ShowsOneLineOfAFilterWithSeveral) {
  const std::string_view expression = "a == 1 &&\nb *  2 &&\nc\n";
  const auto ast = ParseFilter(expression);
  ASSERT_FALSE(ast.has_value());
  EXPECT_EQ(ast.error().Place(expression), "line 2, column 3");
  EXPECT_EQ(ast.error().Excerpt(expression), "  b *  2 &&\n    ^\n");
  const std::string_view block = "number >\n";
  EXPECT_EQ(ParseFilter(block).error().Place(block), "column 9") << "the break is YAML's";
  EXPECT_EQ(ParseFilter(block).error().Excerpt(block), "  number >\n          ^\n");
}

TEST(FilterError, ShowsTextThatFitsATerminalAndCannotHarmIt) {
  std::string expression;
  for (int i = 0; i < 100; ++i) expression += "a == 1 && ";
  const std::string excerpt = FilterError({.offset = 500}).Excerpt(expression);
  EXPECT_EQ(excerpt, "  ..." + expression.substr(450, 72) + "...\n" + std::string(55, ' ') + "^\n");
  EXPECT_EQ(FilterError({.offset = 2}).Excerpt("\xff\x1b[0m"), "  ? [0m\n    ^\n");
  EXPECT_EQ(FilterError({.offset = 0}).Excerpt(""), "  \n  ^\n");
}

TEST(FilterParser, KeepsItsLimits) {
  std::string deep(kMaxFilterNesting, '(');
  deep += "a" + std::string(kMaxFilterNesting, ')');
  EXPECT_TRUE(ParseFilter(deep).has_value());
  EXPECT_EQ(ParseFilter("(" + deep + ")").error().code, ErrorCode::kLimit);
  EXPECT_EQ(ParseFilter(std::string(kMaxFilterNesting + 1, '!') + "a").error().code,
            ErrorCode::kLimit);

  std::string wide = "a";
  while (wide.size() + 2 <= kMaxFilterText) wide += "&a";
  EXPECT_EQ(ParseFilter(wide).error().code, ErrorCode::kLimit) << "too many nodes";
  EXPECT_EQ(ParseFilter(std::string(kMaxFilterText + 1, ' ')).error().code, ErrorCode::kLimit);

  std::string right = "a";
  for (int i = 0; i < 20; ++i) right.insert(0, "a & (").append(")");
  EXPECT_EQ(CompileFilter(right).error().code, ErrorCode::kLimit) << "too deep a stack";
}

}  // namespace
}  // namespace weft
