"""buf: calls by reflection against the running server, and the templates that generate other languages' stubs.

    buf_test.py SERVER_BINARY OUTPUT_FOLDER

A template is tried where its plugins are installed (apt-get install protoc-gen-go protoc-gen-go-grpc
protobuf-compiler-grpc-java-plugin).
"""

import base64
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY, OUTPUT = sys.argv[1], pathlib.Path(sys.argv[2])
BUF = pathlib.Path(sys.executable).parent / "buf"
SERVICE = "maxsimd.v1.RerankService"


def run_buf(*arguments):
    done = subprocess.run([BUF, *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def matrix(*rows):
    data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    return {"elementType": "ELEMENT_TYPE_FLOAT32", "dim": len(rows[0]),
            "data": base64.b64encode(data).decode()}


QUERY = {"tokens": matrix([1, 0], [0, 1])}
DOCUMENTS = {"tokens": matrix([1, 0], [0.5, 0], [0, 2], [-1, 0]), "lengths": [1, 2, 1],
             "ids": ["a", "b", "c"]}
RANKING = [("b", 2.5), ("a", 1.0), ("c", -1.0)]


class BufCurlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen(
            [BINARY, "--listen=127.0.0.1:0", "--drain-delay=0", "--backend=cpu"],
            stderr=subprocess.PIPE, text=True)
        line = next(line for line in cls.server.stderr if "listening on " in line)
        cls.url = "http://" + line.split("listening on ")[1].strip()

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGTERM)
        cls.server.stderr.read()
        cls.server.stderr.close()
        cls.server.wait()

    def curl(self, *arguments):
        """gRPC over HTTP/2 without TLS; the schema comes from the server."""
        return run_buf("curl", "--protocol=grpc", "--http2-prior-knowledge", *arguments)

    def call(self, method, *messages):
        """Gives the responses, which buf prints one after the other."""
        data = [json.dumps(message) for message in messages]
        text = self.curl("--data", "\n".join(data), f"{self.url}/{SERVICE}/{method}")
        responses = []
        while text.strip():
            response, end = json.JSONDecoder().raw_decode(text.lstrip())
            responses.append(response)
            text = text.lstrip()[end:]
        return responses

    def check_ranking(self, responses):
        results = [result for response in responses for result in response.get("results", [])]
        self.assertEqual([(r["id"], r["score"]) for r in results], RANKING)
        self.assertEqual(responses[-1]["summary"]["documents"], "3")

    def test_lists_services(self):
        services = self.curl("--list-services", self.url).split()
        self.assertLessEqual({SERVICE, "grpc.health.v1.Health"}, set(services))

    def test_server_info(self):
        [info] = self.call("GetServerInfo", {})
        self.assertEqual(info["backend"], "cpu")
        self.assertIn("ELEMENT_TYPE_BFLOAT16", info["elementTypes"])

    def test_rerank(self):
        self.check_ranking(self.call(
            "Rerank", {"query": QUERY, "documents": DOCUMENTS, "options": {"topK": 3}}))

    def test_rerank_stream(self):
        self.check_ranking(self.call(
            "RerankStream",
            {"start": {"query": QUERY, "options": {"topK": 3}}},
            {"documents": DOCUMENTS}))

    def test_an_error_names_the_field(self):
        wrong = {**DOCUMENTS, "lengths": [1, 2, 2]}
        with self.assertRaisesRegex(AssertionError, r"(?s)invalid_argument.*documents\.lengths"):
            self.call("Rerank", {"query": QUERY, "documents": wrong})


class BufGenerateTest(unittest.TestCase):
    def generate(self, language, *plugins):
        missing = [plugin for plugin in plugins if shutil.which(plugin) is None]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")
        proto = ROOT / "proto"
        run_buf("generate", proto, "--template", proto / f"buf.gen.{language}.yaml",
                "--output", OUTPUT)
        return OUTPUT / "gen" / language

    def test_go(self):
        folder = self.generate("go", "protoc-gen-go", "protoc-gen-go-grpc") / "maxsimd" / "v1"
        self.assertIn("package maxsimdv1\n", (folder / "rerank.pb.go").read_text())
        self.assertIn("func NewRerankServiceClient(", (folder / "rerank_grpc.pb.go").read_text())

    def test_java(self):
        folder = self.generate("java", "protoc", "grpc_java_plugin") / "io" / "maxsimd" / "v1"
        self.assertTrue((folder / "RerankRequest.java").exists())
        stubs = (folder / "RerankServiceGrpc.java").read_text()
        self.assertIn("newBlockingStub(", stubs)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
