"""Files on S3, as the settings make it of `S3_BUCKET`: a contract test against a server of the protocol.

What is kept there (sources, traces) goes in through the API and the queue and comes out through us alone.
"""

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError
from moto.server import ThreadedMotoServer

from evaluator import services
from evaluator.runner import fetch_source, run_lease
from portal.accounts.models import User
from portal.pages.data_rights import erase
from portal.submissions.models import Submission
from tests import factories
from tests.evaluator.fake_judge import TIMELINE, FakeJudge
from tests.evaluator.test_runner import Watch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
Api = Callable[..., Any]

SETTINGS = Path(__file__).resolve().parents[2] / "portal" / "settings" / "base.py"
ACCOUNT = {"S3_REGION": "us-east-1", "S3_ACCESS_KEY": "test", "S3_SECRET_KEY": "test"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty bucket, and the product's own settings for it."""
    client = boto3.resource(
        "s3", endpoint_url=endpoint, region_name=ACCOUNT["S3_REGION"],
        aws_access_key_id=ACCOUNT["S3_ACCESS_KEY"], aws_secret_access_key=ACCOUNT["S3_SECRET_KEY"],
    )  # fmt: skip
    made = client.create_bucket(Bucket=f"pkb-{id(monkeypatch)}")
    for name, value in {"S3_BUCKET": made.name, "S3_ENDPOINT_URL": endpoint, **ACCOUNT}.items():
        monkeypatch.setenv(name, value)
    chosen = runpy.run_path(str(SETTINGS))["STORAGES"]["default"]
    settings.STORAGES = {**settings.STORAGES, "default": chosen}
    return made


def kept(bucket: Any) -> dict[str, bytes]:
    """Every object by name."""
    return {item.key: item.get()["Body"].read() for item in bucket.objects.all()}


@pytest.fixture
def author() -> User:
    factories.ProblemFactory(number=1)
    factories.TargetFactory()
    return factories.UserFactory()


def send(api: Api, author: User, **fields: Any) -> Any:
    file = SimpleUploadedFile("solution.py", factories.GOOD.encode())
    return api(author).post(
        "/api/v1/submissions/", {"file": file, "problem": "allreduce", "target": "cpu4", **fields}
    )


def test_a_source_goes_in_and_comes_out_for_those_who_may_see_it(
    bucket: Any, api: Api, author: User, tmp_path: Path
) -> None:
    sent = send(api, author)
    assert sent.status_code == 202, sent.content
    row = Submission.objects.get()
    path = f"/api/v1/submissions/{row.pk}/source/"

    assert kept(bucket) == {f"sources/{row.pk}/solution.py": factories.GOOD.encode()}
    mine = api(author).get(path)
    assert (mine.status_code, mine.content) == (200, factories.GOOD.encode())
    assert [api(who).get(path).status_code for who in (None, factories.UserFactory())] == [404, 404]
    assert fetch_source(row, tmp_path).read_bytes() == factories.GOOD.encode()


def test_no_object_is_open_to_the_world_and_no_answer_names_its_address(
    bucket: Any, endpoint: str, api: Api, author: User
) -> None:
    send(api, author)
    (item,) = bucket.objects.all()

    assert [grant["Grantee"].get("URI") for grant in item.Acl().grants] == [None]
    row = Submission.objects.get()
    answers = [api(author).get(f"/api/v1/submissions/{row.pk}/{part}") for part in ("", "source/")]
    told = [str(answer.headers) + answer.content.decode() for answer in answers]
    assert not [text for text in told if endpoint in text or bucket.name in text]


def test_a_trace_goes_in_by_the_queue_and_comes_out_for_its_author(
    bucket: Any, api: Api, author: User
) -> None:
    send(api, author, mode="profile")
    lease = services.lease(host=services.register_host(name="one", target="cpu4"))
    assert lease is not None

    run_lease(judge=FakeJudge("cpu4"), lease=lease, watch=Watch())

    row = Submission.objects.get()
    folder = f"artifacts/{row.pk}/1-"
    objects = kept(bucket)
    assert {name: objects[name] for name in objects if name.startswith("artifacts/")} == {
        f"{folder}trace.json.gz": b"a trace",
        f"{folder}timeline.json": TIMELINE,
    }
    path = f"/api/v1/submissions/{row.pk}/trace/"
    mine = api(author).get(path)
    assert (mine.status_code, mine.content) == (200, b"a trace")
    assert api(factories.UserFactory()).get(path).status_code == 404
    assert not services.keep_artifact(token=lease.token, name="trace.json.gz", content=b"too late")
    assert kept(bucket) == objects


def test_a_row_that_fails_leaves_no_object(
    bucket: Any, api: Api, author: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        assert kept(bucket), "the file is stored before its row"
        raise IntegrityError("no such row")

    monkeypatch.setattr("portal.submissions.services._insert", fails)

    assert send(api, author).status_code == 409
    assert kept(bucket) == {}


def test_an_account_that_goes_takes_its_objects_along(
    bucket: Any, api: Api, author: User, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    send(api, author)
    assert kept(bucket)

    with django_capture_on_commit_callbacks(execute=True):
        erase(by=author)

    assert kept(bucket) == {}
