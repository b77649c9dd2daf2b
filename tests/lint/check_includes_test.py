#!/usr/bin/python3
"""The include rule finds what it is for, and nothing else."""
import unittest

from check_includes import faults_of


class IncludeRule(unittest.TestCase):
    def test_downward_is_allowed_and_upward_is_not(self):
        self.assertEqual(faults_of("algo/ring.cc", '#include "src/base/status.h"\n#include "algo/x.h"\n#include <vector>\n'), [])
        self.assertEqual(faults_of("algo/ring.cc", '\n#include "src/core/group.h"\n'),
                         ["algo/ring.cc:2: algo may not include src/core (src/core/group.h)"])

    def test_transport_knows_neither_algorithms_nor_topology(self):
        for header in ("algo/schedule.h", "topology/machine.h", "src/core/context.h"):
            self.assertEqual(len(faults_of("transport/shm/ring.cc", f'#include "{header}"\n')), 1, header)

    def test_programs_see_the_public_headers_only(self):
        self.assertEqual(faults_of("perf/main.cc", "#include <tutti/tutti.h>\n"), [])
        self.assertEqual(len(faults_of("perf/main.cc", '#include "src/base/clock.h"\n')), 1)

    def test_foreign_headers_stay_in_their_room(self):
        self.assertEqual(faults_of("topology/machine.cc", "#include <hwloc.h>\n"), [])
        self.assertEqual(faults_of("src/core/join.cc", "#include <hwloc.h>\n"),
                         ["src/core/join.cc:1: <hwloc.h> stays in topology"])
        self.assertEqual(len(faults_of("src/core/join.cc", "#include <infiniband/verbs.h>\n")), 1)
        self.assertEqual(len(faults_of("algo/a.cc", "#include <netinet/in.h>\n")), 1)

    def test_the_environment_is_read_in_config_alone(self):
        self.assertEqual(faults_of("src/base/config_source.cc", 'auto x = std::getenv("A");'), [])
        self.assertEqual(len(faults_of("src/core/join.cc", 'auto x = std::getenv("A");')), 1)
        self.assertEqual(len(faults_of("perf/main.cc", 'auto x = secure_getenv("A");')), 1)

    def test_comments_are_not_code(self):
        self.assertEqual(faults_of("algo/a.cc", '// #include "src/core/group.h"\n/* getenv("A")\n */'), [])

    def test_the_line_is_named_behind_a_long_comment(self):
        self.assertTrue(faults_of("algo/a.cc", "/* a\n b\n c */\n#include <mpi.h>\n")[0].startswith("algo/a.cc:4:"))


unittest.main()
