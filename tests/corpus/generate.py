"""Writes the cases of this folder: python3 generate.py OUT_DIR

Seeded: the same bytes every time. They are made at test time and not committed.
"""
import sys

import programs  # noqa: F401  (finds casegen)
import error_cases
import memory_cases
import pace_cases
import quiet_cases
import report_cases


def build():
    return memory_cases.build() + error_cases.build() + pace_cases.build() + quiet_cases.build() + report_cases.build()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = build()
    assert len({c.id for c in cases}) == len(cases), "two cases of one name"
    for case in cases:
        case.write(sys.argv[1])
    print("%d cases" % len(cases))
