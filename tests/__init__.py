# SPDX-License-Identifier: Apache-2.0
"""The package of tests and of the code that they share. A file imports another by its path from the
top of the repository, as in `from tests.local.weft_local import LocalTest`. This file makes `tests`
mean this folder, also where Python finds another package of that name; bench/, deploy/, kmod/ and
scripts/ have such a file for the same reason."""
