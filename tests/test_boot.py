"""The commands of the documents install a working service in a booted system, and its units do their work.

`systemd-nspawn` boots this machine's own system with a network of its own, this checkout and the Python of
the tests. Everything is written to memory. Commands that download something are left out.
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

DOMAIN = "reviews.example.org"
BAKERY = "bakery.example.org"
EXPORT = "takeout-20261101T101112Z-001.zip"
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


SCRIPT = f"""#!/bin/bash
exec > /out/log 2>&1; set -x
trap 'journalctl -u "reviewsd*" --no-pager' EXIT
sudo() {{ "$@"; }}
curl() {{ command curl -sS --retry 9 --retry-connrefused "$@"; }}  # a reload of nginx takes a moment
ask() {{ curl -ki --resolve {DOMAIN}:443:127.0.0.1 https://{DOMAIN}/api/reviews/search?limit=1 -o /out/$1; }}
property() {{ systemctl show -P $1 reviewsd; }}
mkdir -p /opt/reviewsd && cp -r /out/bin /opt/reviewsd
for domain in {DOMAIN} {BAKERY}
do mkdir -p /etc/letsencrypt/live/$domain && cp /out/*.pem /etc/letsencrypt/live/$domain
done
systemctl start nginx
cd /clone
{shell_block("README.md", "umask 022")}
ask proxied
awk '/^[[:space:]]*worker_[rc]/ {{print $2}}' /etc/nginx/nginx.conf > /out/nginx_connections
stat -Lc '%a' /var/lib/reviewsd > /out/state_mode
cat /proc/$(property MainPID)/status > /out/process

process=$(property MainPID)
systemctl reload reviewsd && test $process = $(property MainPID) && echo yes > /out/reloaded
for _ in $(seq 50); do journalctl -u reviewsd --no-pager | grep "changed: nothing" > /out/read_again && break; sleep 0.1; done
systemctl kill --signal=KILL reviewsd
for _ in $(seq 100); do test "$(property NRestarts)" = 1 && break; sleep 0.1; done
systemctl start reviewsd && ask restarted

{commands_of("business.conf")}
for _ in $(seq 50); do  # until then nginx's old workers answer with the other business
  curl -ki --resolve {BAKERY}:443:127.0.0.1 https://{BAKERY}/api/reviews/search?limit=1 -o /out/bakery
  grep -q {BAKERY} /out/bakery && break; sleep 0.1
done
ask beside_the_bakery
ls -d /var/lib/reviewsd /var/lib/reviewsd-bakery > /out/two_states
sed 's/Larkspur Hollow/The Bakery/' data/reviews.json > /srv/reviews-bakery/reviews.json
systemctl reload reviewsd@bakery
for _ in $(seq 50); do curl http://127.0.0.1:8090/reviews.json | grep -o "The Bakery" > /out/own_data && break; sleep 0.1; done
systemctl stop reviewsd@bakery

cd /tmp
{shell_block("docs/server.md", "sudo flock /srv/reviews tar")}
systemctl stop reviewsd
sha256sum /srv/reviews/*.json > /out/before_the_loss
rm -r /srv/reviews /var/lib/private/reviewsd /var/lib/reviewsd
{shell_block("docs/server.md", "sudo tar -C /srv -xzf")}
systemctl start reviewsd && ask moved
sha256sum /srv/reviews/*.json > /out/after_the_loss
stat -Lc '%U %a' /var/lib/reviewsd /var/lib/reviewsd/websub.sqlite3 > /out/moved_state
cd /clone

{commands_of("read-instance.conf")}
curl http://127.0.0.1:8081/healthz > /out/second
systemctl clean reviewsd-read; systemctl stop reviewsd-read; systemctl clean reviewsd-read
test -d /var/lib/reviewsd && echo yes > /out/state_kept

{commands_of("unix-socket.conf")}
ask by_socket
stat -c '%a %G' /run/reviewsd /run/reviewsd/http.sock > /out/socket

rm /srv/reviews/*.json
USER=nobody
{shell_block("docs/your-reviews.md", 'sudo install -d -o "$USER" /srv/reviews-drop')}
stat -c %U /srv/reviews-drop > /out/drop_owner
/opt/reviewsd/bin/reviewsd-import /out/{EXPORT} --data /srv/reviews --zone UTC
rm /srv/reviews/reviews.json  # the import makes it anew, with a mode of its own
install -m 600 -o nobody /out/{EXPORT} /srv/reviews-drop
for _ in $(seq 300); do test -e /srv/reviews/reviews.json && break; sleep 0.1; done
test -e /srv/reviews/reviews.json && echo yes > /out/noticed
systemctl start reviewsd-import  # returns when it is done
systemctl restart reviewsd
curl --unix-socket /run/reviewsd/http.sock http://localhost/reviews.json > /out/imported
stat -c '%U %a' /srv/reviews/*.json | sort -u > /out/modes
{shell_block("docs/insights.md", "sudo install -m 644 deploy/reviewsd-insights")}
install -D -m 600 /dev/stdin /etc/reviewsd-insights.key <<< sesame
mkdir /etc/systemd/system/reviewsd-insights.service.d
(echo '[Service]'; sed -n -E 's/^#(LoadCredential|Environment)/\1/p' /clone/deploy/reviewsd-insights.service) \
  > /etc/systemd/system/reviewsd-insights.service.d/key.conf
systemctl daemon-reload; systemctl start reviewsd-insights
journalctl -u reviewsd-insights --no-pager > /out/insights
cd /out; ln -s /clone/deploy deploy
/out/bin/python /out/fake_google.py & FAKE=$!
for _ in $(seq 100); do test -e google.json && break; sleep 0.1; done
mkdir /etc/systemd/system/reviewsd-google.service.d
printf '[Service]\nExecStart=\nExecStart=/out/bin/python /out/ask_google.py %%d/google.json\n' \
  > /etc/systemd/system/reviewsd-google.service.d/fake.conf
{shell_block("docs/google.md", "   sudo install -m 600 google.json")}
systemctl start reviewsd-google; systemctl start reviewsd-google
kill $FAKE
grep -c '"rating"' /srv/reviews/reviews.json > /out/from_google
journalctl -u reviewsd-google --no-pager > /out/google_log
stat -c '%U %a' /srv/reviews/reviews.json /etc/reviewsd-google.json > /out/google_modes
cd /clone

systemctl is-enabled reviewsd reviewsd@bakery reviewsd-import.path reviewsd-import.timer \
  reviewsd-insights.timer reviewsd-google.timer > /out/enabled

echo '{{' > /srv/reviews/reviews.json
systemctl restart reviewsd
property SubState > /out/after_bad_data
touch /out/end
"""

# A fake of Google, whose addresses the unit's own command line cannot take.
FAKE_GOOGLE = """
import sys, threading
sys.path.insert(0, "/clone/tests")
from lab.google_lab import FakeGoogle

with FakeGoogle() as google:
    google.now = "2026-11-02T10:00:00+00:00"  # after the Takeout
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


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the script in the booted system wrote a file for every fact."""
    for name in ("systemd-nspawn", "curl", "nginx"):
        program(name)
    needs("a booted system")
    out = tmp_path_factory.mktemp("booted")
    certificate = trustme.CA().issue_cert(DOMAIN)
    certificate.cert_chain_pems[0].write_to_path(out / "fullchain.pem")
    certificate.private_key_pem.write_to_path(out / "privkey.pem")
    takeout(out / EXPORT, [item(number) for number in range(4)])
    (out / "bin").mkdir()
    scripts = {"script": SCRIPT}
    scripts |= {"fake_google.py": FAKE_GOOGLE, "ask_google.py": ASK_GOOGLE}
    for name, arguments in PROGRAMS.items():
        scripts[f"bin/{name}"] = LAUNCHER % arguments
    for name, content in scripts.items():
        (out / name).write_text(content)
        (out / name).chmod(0o755)
    site = sysconfig.get_paths()["purelib"]
    places = {sys.base_prefix: "/python", site: "/site", str(ROOT): "/clone"}
    binds = [f"--bind-ro={here}:{there}" for here, there in places.items()] + [
        f"--bind={out}:/out"
    ]
    directory = tmp_path_factory.mktemp("root")
    command = booted_command(directory, *binds, "--boot", "systemd.run=/out/script")
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert (out / "end").exists(), done
    return out


def fact(booted: Path, name: str) -> str:
    """The content of a file that the script wrote; fails with the log of the script if there is none."""
    file = booted / name
    text = file.read_text() if file.exists() else ""
    assert text, (booted / "log").read_text()
    return text


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
    ("claim", "name", "pattern"),
    [
        ("the daemon is not root", "process", r"(?m)^Uid:\s[1-9]"),
        ("it has no capabilities", "process", r"(?m)^CapBnd:\s0{16}$"),
        ("it gains no privileges", "process", r"(?m)^NoNewPrivs:\s1$"),
        ("its system calls are filtered", "process", r"(?m)^Seccomp:\s2$"),
        ("others cannot read what it writes", "process", r"(?m)^Umask:\s0077$"),
        ("only it reads its state", "state_mode", r"^700$"),
        (
            "nginx has the connections of the README",
            "nginx_connections",
            r"^32768;\n16384;$",
        ),
        ("a reload keeps the process", "reloaded", "^yes$"),
        ("a reload reads the files again", "read_again", "reloaded 160 reviews"),
        ("a second instance has no hub", "second", '"subscriptions": ?null'),
        (
            "a second instance does not own the state of the first",
            "state_kept",
            "^yes$",
        ),
        (
            "only the proxy may use the socket",
            "socket",
            r"^750 www-data\n660 www-data$",
        ),
        ("the unit imports an export of another user", "imported", '("rating":.*){4}'),
        ("an export in the drop folder is noticed", "noticed", "^yes$"),
        ("the daemon may read what an import wrote", "modes", "^root 644$"),
        ("the units start with the system", "enabled", r"^(enabled\n?){6}$"),
        ("the unit brings a review from Google", "from_google", "^5$"),
        ("a second run finds nothing new", "google_log", "nothing new, 5 review"),
        ("the key is for root alone", "google_modes", r"^root 644\nroot 600$"),
        ("each business has a state of its own", "two_states", r"^\S+\n\S+-bakery$"),
        ("each business has data of its own", "own_data", "^The Bakery"),
        (
            "the service owns the state that was moved",
            "moved_state",
            r"^reviewsd 700\nreviewsd 600$",
        ),
        (
            "the drop folder belongs to the person who fills it",
            "drop_owner",
            "^nobody$",
        ),
        (
            "the reading has the key of a credential, and asks the server",
            "insights",
            r"no server answers at http://127\.0\.0\.1:11434/v1",
        ),
        (
            "bad data do not restart the service again and again",
            "after_bad_data",
            "^failed$",
        ),
    ],
)
def test_the_installed_system_is_as_documented(
    booted: Path, claim: str, name: str, pattern: str
) -> None:
    assert re.search(pattern, fact(booted, name)), claim
