import unittest

import frontend
from frontend_pb2 import DescribeRequest


class FrontendTest(unittest.TestCase):
    def test_state_follows_the_variable(self):
        answer = frontend.describe(DescribeRequest(env={"XDG_DATA_HOME": "/data/x/"}))
        self.assertEqual(answer.state[1].path, "/data/x/crush")

    def test_a_relative_path_is_refused(self):
        with self.assertRaises(ValueError):
            frontend.describe(DescribeRequest(env={"XDG_CONFIG_HOME": "x"}))


if __name__ == "__main__":
    unittest.main()
