"""A real LDAP directory (OpenLDAP's slapd, on loopback), and logins by it."""

import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

from support.server import Server
from support.wire import poll

NS = "{https://sts.amazonaws.com/doc/2011-06-15/}"
SUFFIX = "dc=lab"
PEOPLE = f"ou=people,{SUFFIX}"
GROUPS = f"ou=groups,{SUFFIX}"
GATEWAY = f"cn=gateway,{SUFFIX}"
GATEWAY_PASSWORD = "of-the-gateway"
MANAGER = f"cn=manager,{SUFFIX}"
MANAGER_PASSWORD = "of-the-manager"
SCHEMAS = Path("/etc/ldap/schema")

CONFIGURATION = """
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/nis.schema
include {schemas}/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.4203.666.1.1 NAME 's3AccessKey' EQUALITY caseExactMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.4203.666.1.2 NAME 's3SecretKey' EQUALITY caseExactMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
objectclass ( 1.3.6.1.4.1.4203.666.3.1 NAME 's3Account' SUP top AUXILIARY MAY ( s3AccessKey $ s3SecretKey ) )
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/pid
{tls}
authz-regexp "cn=gateway" "{gateway}"
database mdb
maxsize 16777216
suffix "{suffix}"
rootdn "{manager}"
rootpw {manager_password}
directory {folder}/data
index s3AccessKey eq
access to attrs=s3SecretKey by dn.exact="{gateway}" read by * none
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{gateway}" read by * none
"""


def installed() -> bool:
    """Whether Debian's slapd and ldap-utils are there."""
    return (
        all(shutil.which(name, path=PATH) for name in ("slapd", "slapadd", "ldapmodify")) and SCHEMAS.is_dir()
    )


PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    assert found
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def entry(dn: str, classes: str, **attributes) -> str:
    """An entry as LDIF; values are in base64, so that they may be anything."""
    lines = [f"dn:: {base64.b64encode(dn.encode()).decode()}"]
    lines += [f"objectClass: {name}" for name in classes.split()]
    for name, values in attributes.items():
        for value in values if isinstance(values, list) else [values]:
            lines.append(f"{name}:: {base64.b64encode(str(value).encode()).decode()}")
    return "\n".join(lines) + "\n\n"


def person(name: str, password: str, ids: int | None = None, **attributes) -> str:
    posix = {} if ids is None else {"uidNumber": ids, "gidNumber": ids, "homeDirectory": "/"}
    classes = "inetOrgPerson" + ("" if ids is None else " posixAccount")
    known = {"uid": name, "cn": name, "sn": name, "userPassword": password}
    return entry(person_dn(name), classes, **(known | posix | attributes))


def person_dn(name: str) -> str:
    return f"uid={name},{PEOPLE}"


def group(name: str, *members: str) -> str:
    return entry(group_dn(name), "groupOfNames", cn=name, member=list(members))


def group_dn(name: str) -> str:
    return f"cn={name},{GROUPS}"


BASE = (
    entry(SUFFIX, "dcObject organization", dc="lab", o="lab")
    + entry(PEOPLE, "organizationalUnit", ou="people")
    + entry(GROUPS, "organizationalUnit", ou="groups")
    + entry(GATEWAY, "organizationalRole simpleSecurityObject", cn="gateway", userPassword=GATEWAY_PASSWORD)
)


class Slapd:
    """A directory with these entries, in LDIF."""

    def __init__(
        self,
        folder: Path,
        entries: str,
        certificate: tuple[Path, Path] | None = None,
        clients: Path | None = None,
    ) -> None:
        self.folder = folder / "slapd"
        (self.folder / "data").mkdir(parents=True)
        self.port, self.tls_port = free_port(), free_port()
        lines = []
        if certificate:
            lines = [f"TLSCertificateFile {certificate[0]}", f"TLSCertificateKeyFile {certificate[1]}"]
            lines += [f"TLSCACertificateFile {clients or certificate[0]}"]
            lines += [f"TLSVerifyClient {'demand' if clients else 'never'}"]
        self.has_tls = certificate is not None
        self.configuration = self.folder / "slapd.conf"
        self.configuration.write_text(
            CONFIGURATION.format(
                schemas=SCHEMAS,
                folder=self.folder,
                tls="\n".join(lines),
                gateway=GATEWAY,
                suffix=SUFFIX,
                manager=MANAGER,
                manager_password=MANAGER_PASSWORD,
            )
        )
        add = [program("slapadd"), "-f", str(self.configuration), "-q"]
        subprocess.run(add, input=(BASE + entries).encode(), check=True, capture_output=True)
        self.log = self.folder / "log"
        self.process: subprocess.Popen | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"ldap://localhost:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"ldaps://localhost:{self.tls_port}"

    def start(self) -> None:
        urls = f"ldap://127.0.0.1:{self.port}/"
        if self.has_tls:
            urls += f" ldaps://127.0.0.1:{self.tls_port}/"
        with self.log.open("ab") as log:
            # With `-d` it stays in the foreground; 256 logs each operation.
            command = [program("slapd"), "-f", str(self.configuration), "-h", urls, "-d", "256"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

        def answers() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            return False

        poll(answers)

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def stall(self, stalled: bool) -> None:
        assert self.process
        self.process.send_signal(signal.SIGSTOP if stalled else signal.SIGCONT)

    def modify(self, ldif: str) -> None:
        """Changes entries, as the manager."""
        command = [program("ldapmodify"), "-x", "-H", f"ldap://127.0.0.1:{self.port}", "-D", MANAGER]
        command += ["-w", MANAGER_PASSWORD]
        subprocess.run(command, input=ldif.encode(), check=True, capture_output=True)

    def add(self, ldif: str) -> None:
        self.modify("\n".join(self.with_change(block) for block in ldif.strip().split("\n\n")))

    @staticmethod
    def with_change(block: str) -> str:
        head, _, rest = block.partition("\n")
        return f"{head}\nchangetype: add\n{rest}\n"

    def delete(self, dn: str) -> None:
        self.modify(f"dn: {dn}\nchangetype: delete\n")

    def binds(self, dn: str) -> int:
        """How many passwords came for an entry."""
        return self.log.read_text(errors="replace").count(f'BIND dn="{dn}" method=128')

    def searches(self, filter_part: str) -> int:
        """How many searches came with a part of a filter."""
        lines = self.log.read_text(errors="replace").splitlines()
        return sum("SRCH base=" in line and filter_part in line for line in lines)

    def options(self, folder: Path) -> list[str]:
        """The options of a gateway that asks this directory, without TLS."""
        password = folder / "ldap-password"
        password.write_text(GATEWAY_PASSWORD + "\n")
        password.chmod(0o600)
        return [
            *("--ldap-server", self.url, "--ldap-in-clear", "--ldap-base", SUFFIX),
            *("--ldap-bind-dn", GATEWAY, "--ldap-bind-password-file", str(password)),
        ]


def ask(server: Server, members: dict[str, str], in_query: bool = False) -> tuple[int, bytes]:
    """Sends a form without a signature; returns status and body."""
    text = urllib.parse.urlencode(members)
    url = f"{server.endpoint}/?{text}" if in_query else server.endpoint
    request = urllib.request.Request(url, data=b"" if in_query else text.encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def form(name: str, password: str, **more: str) -> dict[str, str]:
    members = {"Action": "AssumeRoleWithLDAPIdentity", "Version": "2011-06-15"}
    return members | {"LDAPUsername": name, "LDAPPassword": password} | more


def log_in(server: Server, name: str, password: str, in_query: bool = False, **more: str) -> tuple:
    """Logs in; returns the key of the session: id, secret and token."""
    status, body = ask(server, form(name, password, **more), in_query)
    assert status == 200, body
    found = ElementTree.fromstring(body).find(f"{NS}AssumeRoleWithLDAPIdentityResult/{NS}Credentials")
    assert found is not None
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    return tuple(found.findtext(f"{NS}{name}") for name in names)


def refused(server: Server, name: str, password: str, **more: str) -> tuple[str, int]:
    """The code and the status of a login that must be refused."""
    status, body = ask(server, form(name, password, **more))
    assert status >= 400, body
    code = ElementTree.fromstring(body).findtext(f"{NS}Error/{NS}Code")
    assert code
    return code, status
