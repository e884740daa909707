"""The commands of the documents install a working service in a booted system.

`systemd-nspawn` boots this machine's own system with a network of its own, this checkout
and the Python of the tests. Everything is written to memory. Commands that download
something are left out. In the system one script runs, stage by stage, which writes a file
for each fact; each claim reads one of them.

Sections: commands of the documents - the script - the fake of Google - the booted system
- claims.
"""

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import trustme
from lab.export_lab import item, takeout
from lab.services import ROOT
from lab.tools import booted_command, needs, program

pytestmark = pytest.mark.slow

# ---- Commands of the documents -------------------------------------------------------

DOMAIN = "reviews.example.org"
BAKERY = "bakery.example.org"
EXPORT = "takeout-20261101T101112Z-001.zip"
# Commands that download or build something.
LEFT_OUT = r"\b(apt|venv|certbot) "


def shell_block(document: str, first_line: str) -> str:
    """The commands of a document in the block that begins with this line."""
    document_text = (ROOT / document).read_text(encoding="utf-8")
    block = document_text.partition(f"```sh\n{first_line}")[2].partition("```")[0]
    assert block
    return script_of(f"{first_line}{block}".splitlines())


def commands_of(drop_in: str) -> str:
    """The commands in the first lines of a drop-in."""
    text = (ROOT / "deploy" / drop_in).read_text(encoding="utf-8")
    return script_of(re.findall(r"(?m)^#   (.*)$", text))


def script_of(commands: list[str]) -> str:
    """Commands for our domain names, without those that download or build something."""
    kept = [line for line in commands if not re.search(LEFT_OUT, line)]
    script = "\n".join(kept)
    return script.replace("YOUR.DOMAIN", DOMAIN).replace("BAKERY.DOMAIN", BAKERY)


# ---- The script: stages, each of which leaves facts in /out --------------------------

PREPARE = f"""#!/bin/bash
exec > /out/log 2>&1; set -x
trap 'journalctl -u "reviewsd*" --no-pager' EXIT
sudo() {{ "$@"; }}
# A reload of nginx takes a moment.
curl() {{ command curl -sS --retry 9 --retry-connrefused "$@"; }}
search() {{
  curl -ki --resolve $1:443:127.0.0.1 https://$1/api/reviews/search?limit=1 -o /out/$2
}}
property() {{ systemctl show -P $1 reviewsd; }}
mkdir -p /opt/reviewsd && cp -r /out/bin /opt/reviewsd
for domain in {DOMAIN} {BAKERY}; do
  mkdir -p /etc/letsencrypt/live/$domain && cp /out/*.pem /etc/letsencrypt/live/$domain
done
systemctl start nginx
cd /clone
"""
INSTALL = f"""
{shell_block("README.md", "umask 022")}
search {DOMAIN} proxied
# Until then nginx's old workers answer with Debian's page.
for _ in $(seq 50); do
  curl -i --resolve {DOMAIN}:80:127.0.0.1 http://{DOMAIN}/reviews?page=2 > /out/plain_http
  grep -q {DOMAIN} /out/plain_http && break; sleep 0.1
done
awk '/^[[:space:]]*worker_[rc]/ {{print $2}}' /etc/nginx/nginx.conf \
  > /out/nginx_connections
stat -Lc '%a' /var/lib/reviewsd > /out/state_mode
cat /proc/$(property MainPID)/status > /out/process
"""
RELOAD_AND_CRASH = f"""
process=$(property MainPID)
systemctl reload reviewsd && test $process = $(property MainPID) && echo yes > /out/reloaded
for _ in $(seq 50); do
  journalctl -u reviewsd --no-pager | grep "changed: nothing" > /out/read_again && break
  sleep 0.1
done
systemctl kill --signal=KILL reviewsd
for _ in $(seq 100); do test "$(property NRestarts)" = 1 && break; sleep 0.1; done
systemctl start reviewsd && search {DOMAIN} restarted
"""
SECOND_BUSINESS = f"""
{commands_of("business.conf")}
# Until then nginx's old workers answer with the other business.
for _ in $(seq 50); do
  search {BAKERY} bakery; grep -q {BAKERY} /out/bakery && break; sleep 0.1
done
search {DOMAIN} beside_the_bakery
ls -d /var/lib/reviewsd /var/lib/reviewsd-bakery > /out/two_states
sed 's/Larkspur Hollow/The Bakery/' data/reviews.json > /srv/reviews-bakery/reviews.json
systemctl reload reviewsd@bakery
for _ in $(seq 50); do
  curl http://127.0.0.1:8090/reviews.json | grep -o "The Bakery" > /out/own_data && break
  sleep 0.1
done
systemctl stop reviewsd@bakery
"""
BACKUP_AND_LOSS = f"""
cd /tmp
{shell_block("docs/server.md", "sudo flock /srv/reviews tar")}
systemctl stop reviewsd
sha256sum /srv/reviews/*.json > /out/before_the_loss
rm -r /srv/reviews /var/lib/private/reviewsd /var/lib/reviewsd
{shell_block("docs/server.md", "sudo tar -C /srv -xzf")}
systemctl start reviewsd && search {DOMAIN} moved
sha256sum /srv/reviews/*.json > /out/after_the_loss
stat -Lc '%U %a' /var/lib/reviewsd /var/lib/reviewsd/websub.sqlite3 > /out/moved_state
cd /clone
"""
SECOND_INSTANCE = f"""
{commands_of("read-instance.conf")}
curl http://127.0.0.1:8081/healthz > /out/second
systemctl clean reviewsd-read; systemctl stop reviewsd-read; systemctl clean reviewsd-read
test -d /var/lib/reviewsd && echo yes > /out/state_kept
"""
UNIX_SOCKET = f"""
{commands_of("unix-socket.conf")}
search {DOMAIN} by_socket
stat -c '%a %G' /run/reviewsd /run/reviewsd/http.sock > /out/socket
"""
IMPORT = f"""
rm /srv/reviews/*.json
USER=nobody
{shell_block("docs/your-reviews.md", 'sudo install -d -o "$USER" /srv/reviews-drop')}
stat -c %U /srv/reviews-drop > /out/drop_owner
/opt/reviewsd/bin/reviewsd-import /out/{EXPORT} --data /srv/reviews --zone UTC
# The import makes it anew, with a mode of its own.
rm /srv/reviews/reviews.json
install -m 600 -o nobody /out/{EXPORT} /srv/reviews-drop
for _ in $(seq 300); do test -e /srv/reviews/reviews.json && break; sleep 0.1; done
test -e /srv/reviews/reviews.json && echo yes > /out/noticed
# Returns when it is done.
systemctl start reviewsd-import
systemctl restart reviewsd
curl --unix-socket /run/reviewsd/http.sock http://localhost/reviews.json > /out/imported
stat -c '%U %a' /srv/reviews/*.json | sort -u > /out/modes
"""
INSIGHTS = f"""
{shell_block("docs/insights.md", "sudo install -m 644 deploy/reviewsd-insights")}
install -D -m 600 /dev/stdin /etc/reviewsd-insights.key <<< sesame
drop_ins=/etc/systemd/system/reviewsd-insights.service.d
mkdir $drop_ins
(
  echo '[Service]'
  sed -n -E 's/^#(LoadCredential|Environment)/\1/p' deploy/reviewsd-insights.service
) > $drop_ins/key.conf
systemctl daemon-reload; systemctl start reviewsd-insights
journalctl -u reviewsd-insights --no-pager > /out/insights
"""
GOOGLE = f"""
cd /out; ln -s /clone/deploy deploy
/out/bin/python /out/fake_google.py & FAKE=$!
for _ in $(seq 100); do test -e google.json && break; sleep 0.1; done
drop_ins=/etc/systemd/system/reviewsd-google.service.d
mkdir $drop_ins
command='/out/bin/python /out/ask_google.py %d/google.json'
printf '[Service]\nExecStart=\nExecStart=%s\n' "$command" > $drop_ins/fake.conf
{shell_block("docs/google.md", "   sudo install -m 600 google.json")}
systemctl start reviewsd-google; systemctl start reviewsd-google
kill $FAKE
grep -c '"rating"' /srv/reviews/reviews.json > /out/from_google
journalctl -u reviewsd-google --no-pager > /out/google_log
stat -c '%U %a' /srv/reviews/reviews.json /etc/reviewsd-google.json > /out/google_modes
cd /clone
"""
BAD_DATA = """
systemctl is-enabled reviewsd reviewsd@bakery reviewsd-import.path reviewsd-import.timer \
  reviewsd-insights.timer reviewsd-google.timer > /out/enabled
echo '{' > /srv/reviews/reviews.json
systemctl restart reviewsd
property SubState > /out/after_bad_data
touch /out/end
"""
# Each stage works on what those before it have left.
STAGES = [PREPARE, INSTALL, RELOAD_AND_CRASH, SECOND_BUSINESS, BACKUP_AND_LOSS]
STAGES += [SECOND_INSTANCE, UNIX_SOCKET, IMPORT, INSIGHTS, GOOGLE, BAD_DATA]

# ---- The fake of Google --------------------------------------------------------------

# The unit's own command line cannot take its addresses.
FAKE_GOOGLE = """
import sys, threading
sys.path.insert(0, "/clone/tests")
from lab.google_lab import FakeGoogle

with FakeGoogle() as google:
    # After the Takeout.
    google.now = "2026-11-02T10:00:00+00:00"
    google.has([0, 1, 2, 3, 40])
    open("/out/google.url", "w").write(google.url)
    open("/out/google.json", "w").write(google.key)
    threading.Event().wait()
"""
ASK_GOOGLE = """
import sys
from reviewslib.importer import command
from reviewslib.importer.google_client import Connection
from reviewslib.importer.google_http import Endpoints

url = open("/out/google.url").read()
endpoints = Endpoints(url, f"{url}/token", f"{url}/v1", f"{url}/v1", f"{url}/v4")
words = ["--google", sys.argv[1], "--data", "/srv/reviews"]
sys.exit(command.main(words, connection=Connection(endpoints)))
"""


# ---- The booted system ---------------------------------------------------------------

# What pip would install as programs, by name, and the arguments of Python for each.
PROGRAMS = {
    "reviewsd": "-m reviewsd",
    "reviewsd-import": "-m reviewslib.importer.command",
    "reviewsd-insights": "-m reviewslib.annotator.command",
    "python": "",
}
LAUNCHER = """#!/bin/sh
LD_LIBRARY_PATH=/python/lib PYTHONPATH=/clone:/site exec /python/bin/python3 %s "$@"
"""


def write_program(path: Path, content: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)


def prepare(out: Path) -> None:
    """Write what the script needs: a certificate, an export, programs, itself."""
    certificate = trustme.CA().issue_cert(DOMAIN)
    certificate.cert_chain_pems[0].write_to_path(out / "fullchain.pem")
    certificate.private_key_pem.write_to_path(out / "privkey.pem")
    takeout(out / EXPORT, [item(number) for number in range(4)])
    for name, arguments in PROGRAMS.items():
        write_program(out / "bin" / name, LAUNCHER % arguments)
    write_program(out / "fake_google.py", FAKE_GOOGLE)
    write_program(out / "ask_google.py", ASK_GOOGLE)
    write_program(out / "script", "".join(STAGES))


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the script wrote a file for each fact."""
    for name in ("systemd-nspawn", "curl", "nginx"):
        program(name)
    needs("a booted system")
    out = tmp_path_factory.mktemp("booted")
    prepare(out)
    site = sysconfig.get_paths()["purelib"]
    readable = {sys.base_prefix: "/python", site: "/site", str(ROOT): "/clone"}
    binds = [f"--bind-ro={here}:{there}" for here, there in readable.items()]
    binds.append(f"--bind={out}:/out")
    root = tmp_path_factory.mktemp("root")
    command = booted_command(root, *binds, "--boot", "systemd.run=/out/script")
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert (out / "end").exists(), done
    return out


def fact(booted: Path, name: str) -> str:
    """What the script wrote; fails with the log of the script if there is nothing."""
    file = booted / name
    text = file.read_text() if file.exists() else ""
    assert text, (booted / "log").read_text()
    return text


# ---- Claims --------------------------------------------------------------------------


def test_what_was_moved_is_what_was_there(booted: Path) -> None:
    assert fact(booted, "after_the_loss") == fact(booted, "before_the_loss")


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        pytest.param("proxied", DOMAIN, id="installed as in the README"),
        pytest.param("restarted", DOMAIN, id="restarted after a crash"),
        pytest.param("bakery", BAKERY, id="for a second business"),
        pytest.param("beside_the_bakery", DOMAIN, id="beside a second business"),
        pytest.param("moved", DOMAIN, id="restored from a backup"),
        pytest.param("by_socket", DOMAIN, id="on a Unix socket"),
    ],
)
def test_the_service_answers_through_nginx(
    booted: Path, name: str, domain: str
) -> None:
    head, _, body = fact(booted, name).partition("\n\n")
    assert head.startswith("HTTP/1.1 200 ")
    assert "X-Cache: " in head
    assert json.loads(body)["reviews"][0]["page_url"].startswith(f"https://{domain}/")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        pytest.param("process", r"(?m)^Uid:\s[1-9]", id="the daemon is not root"),
        pytest.param("process", r"(?m)^CapBnd:\s0{16}$", id="it has no capabilities"),
        pytest.param("process", r"(?m)^NoNewPrivs:\s1$", id="it gains no privileges"),
        pytest.param(
            "process", r"(?m)^Seccomp:\s2$", id="its system calls are filtered"
        ),
        pytest.param(
            "process", r"(?m)^Umask:\s0077$", id="others cannot read what it writes"
        ),
        pytest.param("state_mode", "^700$", id="only it reads its state"),
        pytest.param(
            "nginx_connections",
            r"^32768;\n16384;$",
            id="nginx has the connections of the README",
        ),
        pytest.param(
            "plain_http",
            rf"^HTTP/1.1 301 (.|\n)*\nLocation: https://{DOMAIN}/reviews\?page=2\s",
            id="plain http leads to the same page",
        ),
        pytest.param("reloaded", "^yes$", id="a reload keeps the process"),
        pytest.param(
            "read_again", "reloaded 160 reviews", id="a reload reads the files again"
        ),
        pytest.param(
            "second", '"subscriptions": ?null', id="a second instance has no hub"
        ),
        pytest.param(
            "state_kept",
            "^yes$",
            id="a second instance does not own the state of the first",
        ),
        pytest.param(
            "socket",
            r"^750 www-data\n660 www-data$",
            id="only the proxy may use the socket",
        ),
        pytest.param(
            "imported",
            '("rating":.*){4}',
            id="the unit imports an export of another user",
        ),
        pytest.param(
            "modes", "^root 644$", id="the daemon may read what an import wrote"
        ),
        pytest.param(
            "enabled", r"^(enabled\n?){6}$", id="the units start with the system"
        ),
        pytest.param("from_google", "^5$", id="the unit brings a review from Google"),
        pytest.param(
            "google_log", "nothing new, 5 review", id="a second run finds nothing new"
        ),
        pytest.param(
            "google_modes", r"^root 644\nroot 600$", id="the key is for root alone"
        ),
        pytest.param(
            "two_states",
            r"^\S+\n\S+-bakery$",
            id="each business has a state of its own",
        ),
        pytest.param("own_data", "^The Bakery", id="each business has data of its own"),
        pytest.param("noticed", "^yes$", id="an export in the drop folder is noticed"),
        pytest.param(
            "moved_state",
            r"^reviewsd 700\nreviewsd 600$",
            id="the service owns the state that was moved",
        ),
        pytest.param(
            "drop_owner",
            "^nobody$",
            id="the drop folder belongs to the person who fills it",
        ),
        pytest.param(
            "insights",
            r"no server answers at http://127\.0\.0\.1:11434/v1",
            id="the reading has the key of a credential, and asks the server",
        ),
        pytest.param(
            "after_bad_data",
            "^failed$",
            id="bad data do not restart the service again and again",
        ),
    ],
)
def test_the_installed_system_is_as_documented(
    booted: Path, name: str, pattern: str
) -> None:
    assert re.search(pattern, fact(booted, name))
