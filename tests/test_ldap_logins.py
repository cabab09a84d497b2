"""Logins by an LDAP directory: names that belong to one entry, slow passwords, lines of the audit log
(docs/IDENTITY.md)."""

# ruff: noqa: F811

import pytest
from test_ldap import DENIED, OWN, WRITES, give, options, pytestmark, s3, slapd  # noqa: F401

from support.identities import client, code_of
from support.ldap import GROUPS, entry, group_dn, log_in, person_dn, refused
from support.server import Server


class TestNames:
    """A name belongs to one entry: whoever logs in by another attribute is not somebody else here."""

    FILTER = ("--ldap-user-filter", "(|(uid={user})(mail={user}))")
    INTERN = "uid=ann,ou=interns,dc=lab"
    INTERNS = entry("ou=interns,dc=lab", "organizationalUnit", ou="interns") + entry(
        INTERN,
        "inetOrgPerson",
        uid="ANN",
        cn="i",
        sn="i",
        mail="intern@lab.example",
        userPassword="of-intern",
    )

    @pytest.fixture
    def server(self, make_server, slapd, tmp_path, options) -> Server:
        server = make_server(*options, *slapd.options(tmp_path), *self.FILTER)
        give(server, "posix", f"cn=proj,{GROUPS}", OWN)
        give(server, "writers", group_dn("staff"), WRITES)
        return server

    def test_of_somebody_else(self, server, slapd, make_server, options, tmp_path):
        ann = log_in(server, "ann@lab.example", "of-ann")
        client(server, "sts", ann).get_caller_identity()
        slapd.add(self.INTERNS)
        assert refused(server, "intern@lab.example", "of-intern") == DENIED
        # The name is nobody's now, also for those who had it before.
        assert refused(server, "ann@lab.example", "of-ann") == DENIED
        other = make_server(*options, *slapd.options(tmp_path), *self.FILTER, tree=server.tree)
        assert code_of(s3(other, ann).list_buckets) == "InvalidAccessKeyId"
        slapd.delete(self.INTERN)
        log_in(server, "ann@lab.example", "of-ann")

    def test_several(self, server, slapd):
        """An entry that gives itself a name besides its own, which no other entry has."""
        slapd.modify(f"dn: {person_dn('ann')}\nchangetype: modify\nadd: uid\nuid: aaron\n")
        assert refused(server, "ann@lab.example", "of-ann") == DENIED
        assert refused(server, "aaron", "of-ann") == DENIED
