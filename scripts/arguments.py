# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Types of command line arguments that several scripts share: argparse turns what they raise into one line and exit status 2."""

import argparse


def percentages(text):
    """'60,40' or '60%,40%': whole numbers of 1 to 100."""
    shares = []
    for word in text.split(","):
        number = word.strip().removesuffix("%")
        if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 100:
            raise argparse.ArgumentTypeError(f"{word!r} is no whole percentage of 1 to 100")
        shares.append(int(number))
    return shares


def names_of(known):
    """A type: names out of `known`, separated by commas."""

    def names(text):
        given = [name for name in text.split(",") if name]
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return given

    return names
