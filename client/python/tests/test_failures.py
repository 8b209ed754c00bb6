"""What happens when servers fail, against servers in Python that do so."""

import threading

import grpc
import numpy as np
import pytest
import trustme
from fake import Fake, Response, failing, failing_after, serving

import maxsimd
from maxsimd import RetryPolicy, _plan, _stream

UNAVAILABLE, EXHAUSTED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED
AT_ONCE = RetryPolicy(initial_backoff=0)

QUERY = np.array([[1, 0], [0, 1]], np.float32)
DOCUMENTS = [np.full((n, 2), n, np.float32) for n in range(1, 9)]
SCORES = [2.0 * n for n in range(1, 9)]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """About two documents in each message."""
    for module in (_plan, _stream):
        monkeypatch.setattr(module, "TARGET_CHUNK_BYTES", 180)


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def address(fake):
    with serving(fake) as address:
        yield address


def by_index(results):
    return [r.score for r in sorted(results, key=lambda r: r.index)]


@pytest.mark.parametrize(
    "plan",
    [failing(UNAVAILABLE), failing(EXHAUSTED, "no room", pushback="1"), failing_after(2)],
    ids=["unavailable", "overloaded", "midway"],
)
def test_repeats_what_may_be_cured(make_calls, fake, address, plan):
    fake.plans = [plan, plan]
    calls = make_calls(address, retry=AT_ONCE)
    assert by_index(calls.rerank(QUERY, DOCUMENTS)) == SCORES
    assert len(fake.calls) == 3
    fake.plans = [plan, plan]
    assert by_index(calls.rerank_stream(QUERY, iter(DOCUMENTS))) == SCORES


def test_a_stream_goes_on_where_it_failed(make_calls, fake, address):
    fake.plans = [failing_after(3), failing_after(2)]
    names = (f"document {n}" for n in range(8))
    results = make_calls(address, retry=AT_ONCE).rerank_stream(QUERY, iter(DOCUMENTS), ids=names)
    assert by_index(results) == SCORES
    assert len(results) == 8
    assert all(r.id == f"document {r.index}" for r in results)
    assert fake.calls == ["RerankStream"] * 3
    assert fake.received[2] < 8  # What had its results wasn't sent again.


def test_progress_renews_the_attempts(make_calls, fake, address):
    fake.plans = [failing_after(2)] * 4
    once_more = RetryPolicy(max_attempts=2, initial_backoff=0)
    results = make_calls(address, retry=once_more).rerank_stream(QUERY, iter(DOCUMENTS))
    assert by_index(results) == SCORES


@pytest.mark.parametrize(
    ("plan", "error"),
    [
        (failing(EXHAUSTED, "max_dim: 9 exceeds 8", pushback="-1"), maxsimd.LimitExceeded),
        (failing(EXHAUSTED, "later", pushback="3600000"), maxsimd.Overloaded),
        (failing(EXHAUSTED, "whoever"), maxsimd.Overloaded),
        (failing(UNAVAILABLE, "no", pushback="never"), maxsimd.Unavailable),
        (failing(grpc.StatusCode.UNAUTHENTICATED, "token"), maxsimd.Unauthenticated),
        (failing(grpc.StatusCode.PERMISSION_DENIED), maxsimd.PermissionDenied),
        (failing(grpc.StatusCode.INTERNAL), maxsimd.InternalError),
        (failing(grpc.StatusCode.DEADLINE_EXCEEDED), maxsimd.DeadlineExceeded),
        (failing(grpc.StatusCode.DATA_LOSS), maxsimd.MaxsimdError),
    ],
)
def test_does_not_repeat_the_rest(make_calls, fake, address, plan, error):
    calls = make_calls(address, retry=AT_ONCE)
    for call in (calls.rerank, calls.rerank_stream):
        fake.plans, fake.calls = [plan], []
        with pytest.raises(error) as raised:
            call(QUERY, DOCUMENTS)
        assert type(raised.value) is error
        assert len(fake.calls) == 1


def test_gives_up_with_the_last_error(make_calls, fake, address):
    fake.plans = [failing(UNAVAILABLE, f"attempt {i}") for i in range(9)]
    retry = RetryPolicy(max_attempts=3, initial_backoff=0)
    with pytest.raises(maxsimd.Unavailable, match="attempt 2"):
        make_calls(address, retry=retry).rerank(QUERY, DOCUMENTS)


def test_overload_says_when_to_come_back(make_calls, fake, address):
    fake.plans = [failing(EXHAUSTED, "no room", pushback="30000")]
    with pytest.raises(maxsimd.Overloaded) as error:
        make_calls(address, timeout=5).rerank(QUERY, DOCUMENTS)  # Doesn't wait beyond that.
    assert error.value.retry_after == 30
    assert error.value.code is EXHAUSTED


def test_the_timeout_covers_all(make_calls, fake, address):
    def stuck(context, results):
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()
        yield from results

    calls = make_calls(address)
    for call in (calls.rerank, calls.rerank_stream):
        fake.plans = [stuck]
        with pytest.raises(maxsimd.DeadlineExceeded):
            call(QUERY, DOCUMENTS, timeout=0.2)
    with pytest.raises(maxsimd.DeadlineExceeded):
        calls.rerank(QUERY, DOCUMENTS, timeout=0)


def twice_the_first(context, results):
    for response in results:
        yield response
        if response.results:
            yield Response(results=response.results[:1])
            break
    yield from results


def without_the_last(context, results):
    responses = list(results)
    yield from responses[:-2]
    yield responses[-1]


def without_summary(context, results):
    yield from list(results)[:-1]


def one_too_many(context, results):
    responses = list(results)
    responses[0].results.add(index=8)
    yield from responses


@pytest.mark.parametrize("plan", [twice_the_first, without_the_last, without_summary, one_too_many])
def test_a_wrong_answer_is_found_out(make_calls, fake, address, plan):
    calls = make_calls(address, retry=AT_ONCE)
    for call in (calls.rerank, calls.rerank_stream):
        fake.plans = [plan]
        with pytest.raises(maxsimd.InternalError):
            call(QUERY, DOCUMENTS)


def test_calls_take_turns_between_addresses(make_calls):
    fakes = [Fake(), Fake()]
    with serving(fakes[0]) as one, serving(fakes[1]) as other:
        calls = make_calls([one, other])
        for _ in range(3):  # Each has its own client, which asks the first for its limits.
            calls.rerank(QUERY, DOCUMENTS)
        assert [len(fake.calls) for fake in fakes] == [0, 3]
        with maxsimd.Client([one, other]) as client:
            for _ in range(4):
                client.rerank(QUERY, DOCUMENTS)
    assert [len(fake.calls) for fake in fakes] == [2, 5]


def test_an_address_that_is_gone_is_passed_over(make_calls, fake, address):
    with serving(Fake()) as gone:
        pass
    calls = make_calls([gone, address], retry=RetryPolicy(initial_backoff=1000))
    assert by_index(calls.rerank(QUERY, DOCUMENTS)) == SCORES
    assert by_index(calls.rerank_stream(QUERY, DOCUMENTS)) == SCORES


def test_nobody_there(make_calls):
    with serving(Fake()) as gone:
        pass
    retry = RetryPolicy(max_attempts=2, initial_backoff=0)
    with pytest.raises(maxsimd.Unavailable):
        make_calls(gone, retry=retry).rerank(QUERY, DOCUMENTS)


@pytest.mark.parametrize("token", ["secret", lambda: "secret"])
def test_the_token_goes_with_each_call(make_calls, fake, address, token):
    make_calls(address, token=token).rerank(QUERY, DOCUMENTS)
    assert fake.metadata[0]["authorization"] == "Bearer secret"


@pytest.mark.parametrize("as_bytes", [True, False])
def test_tls_both_ways(make_calls, fake, tmp_path, as_bytes):
    authority = trustme.CA()
    server = authority.issue_cert("localhost")
    caller = authority.issue_cert("caller@example.org")
    authority_pem = authority.cert_pem.bytes()
    credentials = grpc.ssl_server_credentials(
        [(server.private_key_pem.bytes(), server.cert_chain_pems[0].bytes())],
        authority_pem,
        require_client_auth=True,
    )
    pem = {
        "ca": authority_pem,
        "cert": caller.cert_chain_pems[0].bytes(),
        "key": caller.private_key_pem.bytes(),
    }
    if not as_bytes:
        for name, content in pem.items():
            (tmp_path / name).write_bytes(content)
        pem = {name: tmp_path / name for name in pem}
    with serving(fake, credentials) as address:
        calls = make_calls(address, tls=maxsimd.Tls(**pem, server_name="localhost"))
        assert by_index(calls.rerank(QUERY, DOCUMENTS)) == SCORES
        once = RetryPolicy(max_attempts=1)
        with pytest.raises(maxsimd.Unavailable):  # Without a certificate of its own.
            make_calls(address, tls=pem["ca"], retry=once).rerank(QUERY, DOCUMENTS)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"target": []}, "target"),
        ({"tls": "/no/such/file"}, "tls"),
        ({"tls": maxsimd.Tls(cert=b"x")}, "tls"),
    ],
)
def test_wrong_options_of_a_client(options, argument):
    with pytest.raises(maxsimd.InvalidArgument) as error:
        maxsimd.Client(**options)
    assert error.value.argument == argument
