"""The contract from Python: generates stubs, starts the server, reranks tests/cases/ over both RPCs.

    python_test.py SERVER_BINARY OUTPUT_FOLDER
"""

import json
import math
import pathlib
import signal
import subprocess
import sys
import unittest

import grpc
import grpc_tools.protoc
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"
BINARY, OUTPUT = sys.argv[1], pathlib.Path(sys.argv[2])


def generate_stubs():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    failed = grpc_tools.protoc.main([
        "protoc", f"-I{ROOT / 'proto'}", f"-I{well_known}", f"--python_out={OUTPUT}",
        f"--grpc_python_out={OUTPUT}", "maxsimd/v1/rerank.proto"])
    if failed:
        sys.exit("protoc failed")
    sys.path.insert(0, str(OUTPUT))


generate_stubs()
from maxsimd.v1 import rerank_pb2, rerank_pb2_grpc  # noqa: E402


class Case:
    """One folder of tests/cases/ and the request that it stands for."""

    def __init__(self, folder):
        self.name = folder.name
        self.expected = json.loads((folder / "case.json").read_text())
        element_type = rerank_pb2.ElementType.Value(
            "ELEMENT_TYPE_" + self.expected["element_type"].upper())

        def array(name):
            path = folder / f"{name}.npy"
            return numpy.load(path) if path.exists() else None

        def matrix(rows):
            return rerank_pb2.TokenMatrix(element_type=element_type, dim=rows.shape[1],
                                          data=rows.tobytes())

        weights, offsets = array("weights"), array("offsets")
        self.rows, self.lengths = array("documents"), array("lengths")
        self.query = rerank_pb2.Query(tokens=matrix(array("query")),
                                      token_weights=[] if weights is None else weights.tolist())
        self.documents = rerank_pb2.Documents(
            tokens=matrix(self.rows), lengths=self.lengths.tolist(),
            offsets=[] if offsets is None else offsets.tolist(),
            ids=[f"{self.name} {i}" for i in range(len(self.lengths))])
        options = dict(self.expected["options"])
        options["aggregation"] = "AGGREGATION_" + options["aggregation"]
        self.options = rerank_pb2.RerankOptions(**options)

    def request(self):
        return rerank_pb2.RerankRequest(query=self.query, documents=self.documents,
                                        options=self.options)

    def messages(self):
        """A start without documents, then the documents; one by one where they lie back to back."""
        yield rerank_pb2.RerankStreamRequest(
            start=rerank_pb2.RerankRequest(query=self.query, options=self.options))
        if self.documents.offsets or not len(self.lengths):
            yield rerank_pb2.RerankStreamRequest(documents=self.documents)
            return
        row = 0
        for i, length in enumerate(self.lengths):
            tokens = rerank_pb2.TokenMatrix(
                element_type=self.documents.tokens.element_type, dim=self.documents.tokens.dim,
                data=self.rows[row:row + length].tobytes())
            yield rerank_pb2.RerankStreamRequest(documents=rerank_pb2.Documents(
                tokens=tokens, lengths=[int(length)], ids=[self.documents.ids[i]]))
            row += int(length)


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen(
            [BINARY, "--listen=127.0.0.1:0", "--max-message-bytes=4MiB", "--drain-delay=0"],
            stderr=subprocess.PIPE, text=True)
        address = next(line.split("listening on ")[1].strip()
                       for line in cls.server.stderr if "listening on " in line)
        cls.channel = grpc.insecure_channel(address)
        cls.stub = rerank_pb2_grpc.RerankServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.server.send_signal(signal.SIGTERM)
        cls.server.stderr.read()
        assert cls.server.wait(timeout=60) == 0

    def check(self, case, responses):
        self.assertTrue(responses[-1].HasField("summary"))
        self.assertEqual(responses[-1].summary.documents, len(case.lengths))
        results = [result for response in responses for result in response.results]
        ranking = case.expected.get("ranking")
        self.assertEqual(len(results), len(case.lengths) if ranking is None else len(ranking))
        if ranking is not None:
            self.assertEqual([result.index for result in results], ranking)
        for result in results:
            i = result.index
            self.assertEqual(result.id, f"{case.name} {i}")
            self.assertEqual(rerank_pb2.DocumentStatus.Name(result.status),
                             "DOCUMENT_STATUS_" + case.expected["statuses"][i])
            exact = case.expected["scores"][i]
            if exact is None:
                self.assertEqual(result.score, -math.inf)
            else:
                self.assertLessEqual(abs(result.score - exact), case.expected["bounds"][i])
        return sorted((result.index, result.SerializeToString()) for result in results)

    def test_every_case_over_both_rpcs_with_the_same_bits(self):
        folders = sorted(path.parent for path in CASES.glob("*/case.json"))
        self.assertTrue(folders)
        for case in map(Case, folders):
            with self.subTest(case.name):
                whole = self.check(case, list(self.stub.Rerank(case.request())))
                chunked = self.check(case, list(self.stub.RerankStream(case.messages())))
                self.assertEqual(whole, chunked)

    def test_an_error_has_code_word_and_push_back(self):
        request = Case(CASES / "matches").request()
        request.documents.lengths[0] += 1
        with self.assertRaises(grpc.RpcError) as wrong:
            list(self.stub.Rerank(request))
        self.assertEqual(wrong.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("lengths", wrong.exception.details())
        request.query.tokens.dim = 5000
        with self.assertRaises(grpc.RpcError) as excess:
            list(self.stub.Rerank(request))
        self.assertEqual(excess.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("max_dim", excess.exception.details())
        self.assertIn(("grpc-retry-pushback-ms", "-1"),
                      [tuple(pair) for pair in excess.exception.trailing_metadata()])

    def test_server_info(self):
        info = self.stub.GetServerInfo(rerank_pb2.GetServerInfoRequest())
        self.assertIn(info.backend, ("cpu", "cuda"))
        self.assertEqual(info.limits.max_message_bytes, 4 << 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
