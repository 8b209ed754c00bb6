"""When a failed call is repeated."""

import grpc
import pytest

from maxsimd._retry import RetryPolicy, pushback_seconds, retry_delay

UNAVAILABLE, EXHAUSTED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED
POLICY = RetryPolicy(max_attempts=4, initial_backoff=1, multiplier=2, max_backoff=3)


def test_backs_off_by_chance_up_to_a_cap():
    delays = [retry_delay(POLICY, attempts, UNAVAILABLE, None, 1.0) for attempts in (1, 2, 3, 4)]
    assert delays == [1, 2, 3, None]
    assert retry_delay(POLICY, 2, UNAVAILABLE, None, 0.25) == 0.5


@pytest.mark.parametrize(
    ("trailer", "delay"), [("0", 0), ("250", 0.25), ("-1", None), ("soon", None), ("60001", None)]
)
@pytest.mark.parametrize("code", [UNAVAILABLE, EXHAUSTED])
def test_the_server_says_when(code, trailer, delay):
    assert retry_delay(POLICY, 1, code, pushback_seconds(trailer), 1.0) == delay


def test_other_codes_are_final():
    assert pushback_seconds(None) is None
    assert retry_delay(POLICY, 1, EXHAUSTED, None, 1.0) is None
    for code in set(grpc.StatusCode) - {UNAVAILABLE, EXHAUSTED}:
        assert retry_delay(POLICY, 1, code, 0.1, 1.0) is None
