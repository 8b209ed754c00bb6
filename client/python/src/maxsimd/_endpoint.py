"""The names and wire forms of the service's methods, for both kinds of channel."""

from typing import Any

from maxsimd._results import ServingStatus
from maxsimd._wire import varint
from maxsimd.v1 import rerank_pb2

_SERVICE = "/maxsimd.v1.RerankService/"


class Endpoint:
    """The methods of one address.

    Args:
        channel: a grpc.Channel or grpc.aio.Channel.
    """

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        # Requests are bytes already, which gRPC sends as they are.
        self.rerank = channel.unary_stream(
            _SERVICE + "Rerank",
            request_serializer=None,
            response_deserializer=rerank_pb2.RerankResponse.FromString,
        )
        self.rerank_stream = channel.stream_stream(
            _SERVICE + "RerankStream",
            request_serializer=None,
            response_deserializer=rerank_pb2.RerankResponse.FromString,
        )
        self.info = channel.unary_unary(
            _SERVICE + "GetServerInfo",
            request_serializer=None,
            response_deserializer=rerank_pb2.GetServerInfoResponse.FromString,
        )
        self.health = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=None,
            response_deserializer=_serving_status,
        )


def health_request(service: str) -> bytes:
    """A HealthCheckRequest: field 1 is the service's name."""
    name = service.encode()
    return b"\x0a" + varint(len(name)) + name if name else b""


def _serving_status(response: bytes) -> ServingStatus:
    """Of a HealthCheckResponse, whose field 1 is the status, one byte; without it UNKNOWN."""
    return ServingStatus(response[1]) if response[:1] == b"\x08" else ServingStatus.UNKNOWN
