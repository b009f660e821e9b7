"""The faults of the model are those that the documents name; deploy/model tries them."""
import json
import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent


class ModelTests(unittest.TestCase):
    def setUp(self):
        self.model = (HERE / "delivery.pml").read_text()
        self.faults = json.loads((HERE / "faults.json").read_text())

    def test_each_fault_changes_one_place(self):
        for fault in self.faults:
            with self.subTest(fault["name"]):
                self.assertEqual(self.model.count(fault["before"]), 1)
                self.assertNotEqual(fault["before"], fault["after"])

    def test_each_property_can_fail(self):
        properties = set(re.findall(r"/\* ([A-Z]+): ", self.model)) - {"BOUND"}
        self.assertEqual(properties, {fault["finds"] for fault in self.faults})

    def test_faults_of_the_simulator_are_there(self):
        mutants = {path.stem for path in (TESTS / "Simulation/mutants").glob("*.patch")}
        named = {fault["simulator"] for fault in self.faults} - {None}
        self.assertLessEqual(named, mutants)

    def test_table_names_each_fault(self):
        rows = re.findall(r"^\| (.+) \| ([A-Z]+) \| \d+ \| (\S*) ?\|$", (TESTS / "README.md").read_text(), re.M)
        self.assertEqual(rows, [(fault["says"], fault["finds"], fault["simulator"] or "") for fault in self.faults])


if __name__ == "__main__":
    unittest.main()
