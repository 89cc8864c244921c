/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Star patterns and event rules; see match.h. */
#include "lib/event/match.h"

#include "lib/event/freestanding.h"

/*
 * Only the last star ever needs to be extended. The text before it matched as early as it could, so
 * that a longer match of an earlier star could not help the text behind it. One place to return to
 * is therefore enough, instead of recursion.
 */
bool weft_glob_match(const char* pattern, uint32_t pattern_size, const char* text,
                     uint32_t text_size) {
  uint32_t p = 0, t = 0;
  uint32_t star_pattern = 0, star_text = 0; /* behind the last star; where its rest was tried */
  bool starred = false;

  for (;;) {
    if (p < pattern_size && pattern[p] == '*') {
      p++;
      if (p == pattern_size) return true;
      starred = true;
      star_pattern = p;
      star_text = t;
      continue;
    }
    if (p < pattern_size && t < text_size) {
      uint32_t quoted = (pattern[p] == '\\' && p + 1 < pattern_size) ? 1 : 0;

      if (pattern[p + quoted] == text[t]) {
        p += quoted + 1;
        t++;
        continue;
      }
    } else if (p == pattern_size && t == text_size) {
      return true;
    } else if (t == text_size) {
      return false; /* the pattern wants more, and a longer star would leave it even less */
    }
    if (!starred) return false;
    star_text++;
    t = star_text;
    p = star_pattern;
  }
}

bool weft_glob_match_str(const char* pattern, const char* text) {
  return weft_glob_match(pattern, weft_text_size(pattern), text, weft_text_size(text));
}

bool weft_match_event(const struct weft_match_rule* rule, const char* name, int32_t loglevel) {
  uint32_t i;

  if (loglevel < rule->loglevel_min || loglevel > rule->loglevel_max) return false;
  if (!weft_glob_match_str(rule->pattern, name)) return false;
  for (i = 0; i < rule->exclusion_count; i++) {
    const char* exclusion = rule->exclusion(rule->exclusions, i);

    if (exclusion && weft_glob_match_str(exclusion, name)) return false;
  }
  return true;
}
