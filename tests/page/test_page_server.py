"""`mastery watch` as seen over raw sockets: what it serves, and what it refuses."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_jobs import chain, make_job, write_job

from mastery import MasteryError
from mastery.page.server import POLICY, Server, is_loopback, open_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "secret.txt").write_text("a secret")
    (folder / "runs").mkdir()
    write_job(folder / "runs" / "job", make_job(seeds=1, points=6), points=6)
    (folder / "runs" / "out").symlink_to(folder)
    (folder / "runs" / "job" / "out").symlink_to(folder / "secret.txt")
    return folder


@contextlib.contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))  # how soon it ends
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def server(folder):
    with serving(Server([folder / "runs"], port=0)) as running:
        yield running


def ask(server, path="/", method="GET", host="127.0.0.1", **headers):
    """One request, byte for byte as it is written here: status, headers, body."""
    lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host else [])]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        connection.sendall(("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in rest), body


def index(server):
    return json.loads(ask(server, "/index.json")[2])


def test_the_page_and_its_parts(server):
    status, headers, body = ask(server)
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    names = re.findall(r'(?:src|href)="([\w.-]+)"', body.decode())
    assert names == ["page.css", "page.js"]
    for name in names:  # which grows by what a module imports
        status, headers, content = ask(server, f"/{name}")
        assert (status, len(content)) == (200, int(headers["Content-Length"]))
        kind = "css" if name.endswith(".css") else "javascript"
        assert headers["Content-Type"] == f"text/{kind}; charset=utf-8"
        imported = re.findall(r"^(?:import|\}).* from '\./([\w.-]+)';", content.decode(), re.M)
        names += [name for name in imported if name not in names]
    assert "model.js" in names
    (job,) = index(server)["jobs"]
    curves = json.loads(ask(server, f"/curves/{job['key']}")[2])
    assert len(curves["frames"]) == 6
    news = json.loads(ask(server, f"/curves/{job['key']}?bins=0&from=5&sessions=1")[2])
    assert (news["from"], len(news["frames"])) == (5, 1)


def test_what_has_not_changed_is_not_sent_again(server):
    tag = ask(server, "/index.json")[1]["ETag"]
    status, headers, body = ask(server, "/index.json", If_None_Match=tag)
    assert (status, body, headers["ETag"]) == (304, b"", tag)


def test_jobs_that_come_go_and_are_replaced(tmp_path):
    def names():
        time.sleep(0.5)
        return [job["name"] for job in index(server)["jobs"]]

    with serving(Server([tmp_path], port=0)) as server:
        assert names() == []
        write_job(tmp_path / "a", make_job(seeds=1, points=6), points=6)
        assert names() == ["a"]
        (old,) = index(server)["jobs"]
        curves = f"/curves/{old['key']}"
        assert len(json.loads(ask(server, curves)[2])["frames"]) == 6
        shutil.rmtree(tmp_path / "a")
        write_job(tmp_path / "a", make_job(chain(5), seeds=2, points=3), points=3)
        write_job(tmp_path / "b", make_job(seeds=1, points=2), points=2)
        assert names() == ["a", "b"]
        new, _ = index(server)["jobs"]
        assert new["key"] == old["key"]
        assert new["version"] != old["version"]
        assert len(new["curriculum"]["tasks"]) == 5
        assert new["runs"] == [[0, 0], [0, 1], [1, 0], [1, 1]]
        found = json.loads(ask(server, f"{curves}?bins=0&from=6&sessions=1")[2])
        assert (found["from"], len(found["frames"])) == (0, 3)
        assert found["mastery"]["shape"] == [4, 5, 3]
        (tmp_path / "a" / "run.db").write_text("not a database")
        assert names() == ["b"]
        assert "damaged" in json.loads(ask(server, curves)[2])["error"]
        shutil.rmtree(tmp_path / "a")
        assert names() == ["b"]
        assert ask(server, curves)[0] == 404


PATHS = [
    "/secret.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt",
    "/%2e%2e%2fsecret.txt", "/curves/../../secret.txt", "/curves/%2e%2e/%2e%2e/secret.txt",
    "/..\\secret.txt", "/%5c..%5csecret.txt", "//secret.txt", "/./../secret.txt",
    "/....//secret.txt", "/runs/job/run.db", "/job/run.db", "/run.db", "/curves/000000000000",
    "/curves/job", "/out/secret.txt", "/job/out", "/clip/000000000000/0/0", "/page.html",
    "/static/page.js", "/page.py", "/__init__.py", "/%00", "/index.json/../../secret.txt",
    "/index.json%00", "file:///etc/passwd", "http://127.0.0.1/../secret.txt", "*",
    "/clip/../../secret.txt/0", "/~root",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_nothing_else_is_served(server, path):
    status, _, body = ask(server, path)
    assert status in (400, 404)
    assert b"secret" not in body.replace(path.encode(), b"")
    assert b"SQLite" not in body


def test_links_that_lead_out_are_told_of_and_not_followed(server, folder):
    (folder / "runs" / "linked").symlink_to(folder / "elsewhere")
    try:
        write_job(folder / "elsewhere", make_job(seeds=1, points=2), points=2)
        time.sleep(0.5)
        found = index(server)
        assert [job["name"] for job in found["jobs"]] == ["job"]
        assert "leads out" in found["problems"][0]["text"]
    finally:
        (folder / "runs" / "linked").unlink()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "localhost@evil",
             "192.168.0.1", "[::2]", "localhost.", "127.0.0.1, evil.example"],
)  # fmt: skip
def test_another_hosts_name_is_refused(server, host):
    status, _, body = ask(server, "/index.json", host=host)
    assert status == 403
    assert b"jobs" not in body


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:99", "LOCALHOST:8765", "[::1]:8765"])
def test_our_own_names_are_known(server, host):
    assert ask(server, "/index.json", host=host)[0] == 200


def test_another_site_may_not_ask(server):
    assert ask(server, "/index.json", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/index.json", Sec_Fetch_Site="same-site")[0] == 403
    assert ask(server, "/index.json", Sec_Fetch_Site="same-origin")[0] == 200
    for path, kind, status in (
        ("/", "document", 200),  # a link to the page
        ("/", "iframe", 403),
        ("/index.json", "document", 403),
    ):
        headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": kind}
        assert ask(server, path, **headers)[0] == status
    assert "Access-Control-Allow-Origin" not in ask(server, "/index.json")[1]


SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@pytest.mark.parametrize(
    "method",
    ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW", "get", "<b>"],
)
def test_it_can_only_be_read(server, method):
    status, headers, body = ask(server, "/index.json", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert headers.items() >= SAFE.items()
    assert b"can only be read" in body


def test_after_a_refused_body_the_connection_ends(server):
    """Or a body could be read as the next request."""
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        inside = b"GET /index.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(inside)}\r\n\r\n"
        connection.sendall(head.encode() + inside)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"\x00\xff", 400),
        (b"GET", 400),
        (b"POST /", 400),
        (b"GET / HTTP/x", 400),
        (b"GET / HTTP/9.9", 505),
        (b"GET /" + b"a" * 70000 + b" HTTP/1.1", 414),
        (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200, 431),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70000, 431),
    ],
)
def test_every_refusal_has_the_same_headers(server, request_line, status):
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        connection.sendall(request_line + b"\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):  # it does not read a long request to its end
            while part := connection.recv(65536):
                answer += part
    first, *rest = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    assert first.startswith(f"HTTP/1.1 {status} ")
    assert dict(line.split(": ", 1) for line in rest).items() >= SAFE.items()


def test_fifty_clients_at_once_all_wait_their_turn(folder):
    """None is turned away, which would cost it a second, even while the server is busy."""
    server = Server([folder / "runs"], port=0)  # accepts nobody yet
    clients = []
    try:
        for _ in range(50):
            clients.append(socket.create_connection(server.server_address[:2], timeout=5))
            clients[-1].sendall(b"GET /index.json HTTP/1.0\r\nHost: localhost\r\n\r\n")
        with serving(server):
            answers = [b"".join(iter(lambda c=c: c.recv(65536), b"")) for c in clients]
    finally:
        for client in clients:
            client.close()
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
    assert len({answer.partition(b"\r\n\r\n")[2] for answer in answers}) == 1


def test_nonsense_does_not_stop_it(server):
    for junk in (
        b"\x00\xff\n\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70000,
    ):
        with socket.create_connection(server.server_address[:2], timeout=5) as connection:
            connection.sendall(junk)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                connection.recv(1000)
    (job,) = index(server)["jobs"]
    for query in (
        "?bins=x",
        "?from=-1",
        "?from=999999999999999999999",
        "?bins=99&from=3",
        "?&&=",
        "?%",
        "?bins=" + "9" * 5000,
        "?from=" + "9" * 5000,
    ):
        assert len(json.loads(ask(server, f"/curves/{job['key']}{query}")[2])["frames"]) == 6
    for task, run in ((99, 0), (0, 99)):
        assert ask(server, f"/clip/{job['key']}/{task}/{run}")[0] == 404


def test_who_may_reach_it():
    assert is_loopback("127.0.0.1")
    assert is_loopback("127.3.2.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("::")
    assert not is_loopback("192.168.0.2")
    assert not is_loopback("example.org")


def test_open_to_others_it_knows_addresses_but_no_foreign_names(folder):
    with serving(Server([folder / "runs"], "0.0.0.0", 0, "abc")) as server:
        assert server.open
        for host, status in (
            ("192.168.0.1:80", 200),
            (socket.gethostname(), 200),
            ("evil.example", 403),
        ):
            headers = {"Authorization": "token abc"}
            assert ask(server, "/index.json", host=host, **headers)[0] == status


TOKEN = "tök en/+&=;"


@pytest.fixture(scope="module")
def guarded(folder):
    with serving(Server([folder / "runs"], "0.0.0.0", 0, TOKEN)) as running:
        yield running


def query(server):
    return "/" + server.address.removeprefix(server.url)


def test_the_token_in_the_address_becomes_a_cookie(guarded):
    status, headers, _ = ask(guarded, query(guarded))
    assert (status, headers["Location"], headers["Cache-Control"]) == (303, "./", "no-store")
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert headers.items() >= SAFE.items()
    for name in ("/", "/page.js", "/index.json"):
        assert ask(guarded, name, Cookie=cookie)[0] == 200
        assert ask(guarded, name, Cookie=f'odd="[; {cookie}; other=1')[0] == 200


def test_a_link_with_the_token_on_another_site_leads_to_the_page_too(guarded):
    """Its redirect would count as the other site's, and strict cookies are not sent with it."""
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}
    status, headers, body = ask(guarded, query(guarded), **link)
    assert (status, "Set-Cookie" in headers) == (200, True)
    assert b'content="0;url=./"' in body


def test_programs_send_the_token_in_a_header(guarded, folder):
    header = {"Authorization": "token abc"}
    assert ask(guarded, "/index.json", **header)[0] == 403
    with serving(Server([folder / "runs"], "0.0.0.0", 0, "abc")) as other:
        assert ask(other, "/index.json", **header)[0] == 200
        for wrong in ("token abd", "token abcd", "token ab", "token ", "abc", "Basic abc"):
            assert ask(other, "/index.json", Authorization=wrong)[0] == 403


@pytest.mark.parametrize(
    "path",
    ["/", "/page.js", "/index.json", "/nothing", "/?token=", "/?token=wrong", "/?token=%ff",
     "/index.json?token=t%C3%B6k%20en%2F%2B%26%3D%3B", "/?other=1"],
)  # fmt: skip
def test_a_missing_or_wrong_token_is_refused(guarded, path):
    for headers in ({}, {"Cookie": f"mastery-{guarded.server_address[1]}=0"}):
        status, found, body = ask(guarded, path, **headers)
        assert status == 403
        assert b"Open the address that mastery watch printed" in body
        assert "Set-Cookie" not in found
        assert found.items() >= SAFE.items()


def test_a_wrong_token_is_refused_although_the_cookie_is_right(guarded):
    cookie = ask(guarded, query(guarded))[1]["Set-Cookie"].partition(";")[0]
    assert ask(guarded, "/?token=wrong", Cookie=cookie)[0] == 403
    other = re.sub(r"\d+", "1", cookie, count=1)  # of a server at another port
    assert ask(guarded, "/", Cookie=other)[0] == 403


def test_tokens_are_random_and_chosen_ones_are_kept(folder):
    def address(*given):
        with Server([folder / "runs"], *given) as server:
            return server.address

    assert address("127.0.0.1", 0).endswith("/")
    assert address("127.0.0.1", 0, "abc").endswith("/?token=abc")
    first, second = (address("0.0.0.0", 0).partition("?token=")[2] for _ in range(2))
    assert first != second
    assert min(len(first), len(second)) >= 32  # 24 random bytes
    with pytest.raises(MasteryError, match="the token is empty"):
        address("0.0.0.0", 0, " ")


def test_no_answer_to_others_has_the_token(guarded):
    for host, path in (("evil.example", "/"), ("localhost", "/"), ("localhost", query(guarded))):
        _, headers, body = ask(guarded, path, host=host)
        assert b"t%C3%B6k" not in body
        assert not any("t%C3%B6k" in value for value in headers.values())


def test_a_busy_port_is_passed_over_or_told(folder):
    with (
        open_server([folder], "127.0.0.1", None) as first,
        open_server([folder], "127.0.0.1", None) as second,
    ):
        assert first.server_address[1] != second.server_address[1]
        busy = first.server_address[1]
        with pytest.raises(
            MasteryError, match=f"port {busy}: Address already in use; give another"
        ):
            open_server([folder], "127.0.0.1", busy)
    with pytest.raises(MasteryError, match="cannot serve at nowhere"):
        open_server([folder], "nowhere.invalid", 0)


def start(*arguments, **variables):
    command = [sys.executable, "-u", "-m", "mastery", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **variables},
    )  # fmt: skip


def test_the_command_says_where_it_serves_and_ends_with_ctrl_c(folder):
    process = start("watch", folder / "runs", "--port", 0)
    assert re.match(r"Page: http://127\.0\.0\.1:\d+/ ", process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("options", "variables", "token"),
    [
        ((), {}, r"[\w-]{32}"),
        (("--token", "a b"), {}, "a%20b"),
        ((), {"MASTERY_TOKEN": "from-outside"}, "from-outside"),
    ],
)
def test_the_command_prints_the_token_when_others_can_reach_it(folder, options, variables, token):
    process = start(
        "watch", folder / "runs", "--port", 0, "--host", "0.0.0.0", *options, **variables
    )
    assert "note: 0.0.0.0 is open to other machines" in process.stderr.readline()
    printed = re.match(rf"Page: http://\S+:(\d+)(/\?token={token}) ", process.stdout.readline())
    reached = SimpleNamespace(server_address=("127.0.0.1", int(printed[1])))
    assert ask(reached)[0] == 403
    assert ask(reached, "/?token=guess")[0] == 403
    assert ask(reached, printed[2])[0] == 303
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "")  # it logs nothing, so no token either


@pytest.mark.parametrize("command", ["watch", "report"])
def test_a_folder_that_is_not_there_is_one_line(command, tmp_path):
    process = start(command, tmp_path / "none")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.startswith("mastery: there is no folder")
    assert errors.count("\n") == 1


def test_a_report_of_nothing_is_one_line(tmp_path):
    process = start("report", tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors == f"mastery: {tmp_path}: there is no training job in it yet\n"
    assert list(tmp_path.iterdir()) == []


def test_a_report_leaves_no_half_written_file(folder, tmp_path):
    process = start("report", folder / "runs", "-o", tmp_path / "page.html")
    out, _ = process.communicate(timeout=60)
    assert out == f"Report: file://{tmp_path / 'page.html'}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    text = (tmp_path / "page.html").read_text()
    assert "unsafe" not in re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    assert Path(tmp_path / "page.html").stat().st_size < 2e6
