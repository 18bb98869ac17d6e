#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""What scripts make of their arguments.

    script_arguments_test.py SCRIPTS_FOLDER
"""
import argparse
import pathlib
import subprocess
import sys
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
import arguments  # noqa: E402


class Percentages(unittest.TestCase):
    def test_are_whole_numbers_with_or_without_a_sign(self):
        self.assertEqual(arguments.percentages("60,40"), [60, 40])
        self.assertEqual(arguments.percentages("60%, 100%,1"), [60, 100, 1])

    def test_others_are_refused(self):
        for text in ["", ",", "sixty", "60,", "0", "101", "-5", "40.5", "60;40", "60%%", "\u0664\u0660"]:
            with self.subTest(text), self.assertRaises(argparse.ArgumentTypeError):
                arguments.percentages(text)


class Names(unittest.TestCase):
    def test_are_of_those_known(self):
        names = arguments.names_of(["lru", "g10"])
        self.assertEqual(names(""), [])
        self.assertEqual(names("g10,lru"), ["g10", "lru"])
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "'foo' is none of lru, g10"):
            names("lru,foo")


class Scripts(unittest.TestCase):
    def test_say_in_one_line_what_is_wrong(self):
        for words in [["play", "--budgets", "sixty"], ["play", "--rivals", "foo"], ["compare_moves", "--budgets", "0"]]:
            with self.subTest(words):
                done = subprocess.run([SCRIPTS / words[0], *words[1:]], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2)
                self.assertNotIn("Traceback", done.stderr)
                self.assertRegex(done.stderr.splitlines()[-1], f"error: argument {words[1]}: '")


unittest.main()
