"""packaging/helm: what the chart makes of values.

./test does not install helm, which Debian does not have; `go install helm.sh/helm/v3/cmd/helm@latest` does.
`SLIPWAY_HELM` names one that is not in PATH.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from support.server import REPOSITORY, binary

CHART = REPOSITORY / "packaging" / "helm" / "slipway"
VALUES = {path.stem: path for path in sorted((CHART / "ci").glob("*.yaml"))}
# One without any.
VALUES["default"] = Path(os.devnull)
HELM = os.environ.get("SLIPWAY_HELM") or shutil.which("helm")
# Each option by its name, and its variable.
OPTIONS = dict(
    re.findall(
        r"^\| `(?:--)?([a-zA-Z-]+)`(?:; `dir` in the file)? \| `(SLIPWAY_\w+)` \|",
        (REPOSITORY / "docs" / "CONFIGURATION.md").read_text(),
        re.MULTILINE,
    )
)
needs_helm = pytest.mark.skipif(not HELM, reason="needs helm, which Debian does not have")


def helm(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def render(*arguments: str | Path) -> subprocess.CompletedProcess:
    # One that was built by go install takes itself for that of an old Kubernetes.
    return helm("template", "r", CHART, "--namespace", "objects", "--kube-version", "1.30.0", *arguments)


@pytest.fixture(params=VALUES)
def rendered(request) -> dict[str, dict]:
    """What is made, by kind."""
    done = render("--values", VALUES[request.param])
    assert done.returncode == 0, done.stderr
    found = {}
    for document in filter(None, yaml.safe_load_all(done.stdout)):
        kind, name = document["kind"], document["metadata"]["name"]
        found["OpsService" if (kind, name) == ("Service", "r-slipway-ops") else kind] = document
    return found


def test_the_schema_has_each_value():
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(values: dict, schema: dict, where: str) -> None:
        if "properties" not in schema:
            return
        assert schema["additionalProperties"] is False, where
        assert set(values) == set(schema["properties"]) - {"global"}, where
        for name, value in values.items():
            if isinstance(value, dict):
                compare(value, schema["properties"][name], f"{where}.{name}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")
    fixed = schema["properties"]["options"]["propertyNames"]["not"]["enum"]
    assert set(fixed) <= {name.replace("DIR", "dir") for name in OPTIONS}


@needs_helm
@pytest.mark.parametrize("values", VALUES)
def test_lint(values):
    done = helm("lint", "--strict", CHART, "--values", VALUES[values])
    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
class TestRendered:
    def pod(self, rendered: dict) -> dict:
        return rendered["Deployment"]["spec"]["template"]["spec"]

    def container(self, rendered: dict) -> dict:
        (container,) = self.pod(rendered)["containers"]
        return container

    def variables(self, rendered: dict) -> dict[str, str]:
        return {variable["name"]: variable["value"] for variable in self.container(rendered)["env"]}

    def test_a_stop_is_waited_for(self, rendered):
        variables = self.variables(rendered)
        longest = int(variables["SLIPWAY_DRAIN_DELAY"]) + int(variables["SLIPWAY_DRAIN_TIMEOUT"])
        assert self.pod(rendered)["terminationGracePeriodSeconds"] > longest
        readiness = self.container(rendered)["readinessProbe"]
        assert readiness["timeoutSeconds"] > 2, "a volume may take that long to answer"

    def test_it_is_closed(self, rendered):
        """As Kubernetes' profile "restricted" asks for, and without an account of the cluster. Who acts as others is root,
        with what that needs alone."""
        pod, container = self.pod(rendered), self.container(rendered)
        if "--impersonate" in container["args"]:
            assert pod["securityContext"]["runAsUser"] == 0
            assert not pod["securityContext"].get("fsGroup")
            assert pod["automountServiceAccountToken"] is False
            capabilities = container["securityContext"].pop("capabilities")
            assert capabilities["drop"] == ["ALL"] and "SETUID" in capabilities["add"]
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
            }
            return
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_labels_and_names_fit(self, rendered):
        deployment = rendered["Deployment"]["spec"]
        labels = deployment["template"]["metadata"]["labels"]
        selectors = [deployment["selector"]["matchLabels"]]
        services = [rendered[kind] for kind in ("Service", "OpsService") if kind in rendered]
        selectors += [service["spec"]["selector"] for service in services]
        if "PodDisruptionBudget" in rendered:
            selectors.append(rendered["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"])
        for selector in selectors:
            assert selector.items() <= labels.items()
        container = self.container(rendered)
        volumes = [volume["name"] for volume in self.pod(rendered)["volumes"]]
        assert sorted(volumes) == sorted(mount["name"] for mount in container["volumeMounts"])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports == {"s3": 9000, "ops": 9090}
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == "ops"
        variables = self.variables(rendered)
        assert variables["SLIPWAY_LISTEN"] == ":9000" and variables["SLIPWAY_OPS_LISTEN"] == ":9090"
        assert variables["SLIPWAY_DIR"] in [mount["mountPath"] for mount in container["volumeMounts"]]

    def test_strangers_do_not_reach_the_operations(self, rendered):
        assert [port["targetPort"] for port in rendered["Service"]["spec"]["ports"]] == ["s3"]
        for rule in rendered.get("Ingress", {"spec": {"rules": []}})["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                assert path["backend"]["service"]["port"] == {"name": "s3"}
        if "OpsService" in rendered:
            assert rendered["OpsService"]["spec"]["clusterIP"] == "None"
            monitor = rendered["ServiceMonitor"]["spec"]
            wanted = monitor["selector"]["matchLabels"].items()
            assert wanted <= rendered["OpsService"]["metadata"]["labels"].items()
            assert not wanted <= rendered["Service"]["metadata"]["labels"].items()

    def test_the_server_knows_each_option(self, rendered, make_server):
        """The arguments are given to it, too."""
        variables, arguments = self.variables(rendered), self.container(rendered)["args"]
        assert set(variables) <= set(OPTIONS.values())
        assert arguments[0] == "serve"
        server = make_server(*arguments[1:])
        assert server.stop() == 0

    def test_the_alerts_find_them(self, rendered):
        """These ask for job="slipway"."""
        if "ServiceMonitor" in rendered:
            label = rendered["ServiceMonitor"]["spec"]["jobLabel"]
            assert rendered["OpsService"]["metadata"]["labels"][label] == "slipway"

    def test_the_network_lets_few_to_the_operations(self, rendered):
        if policy := rendered.get("NetworkPolicy"):
            labels = rendered["Deployment"]["spec"]["template"]["metadata"]["labels"]
            assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
            ports = [(rule["ports"], rule.get("from")) for rule in policy["spec"]["ingress"]]
            assert ports[0] == ([{"port": "s3"}], None)
            for wanted, those in ports[1:]:
                # Without "from" it would be everybody.
                assert wanted == [{"port": "ops"}] and those

    def test_keys(self, rendered):
        variables = self.variables(rendered)
        secrets = [volume["secret"] for volume in self.pod(rendered)["volumes"] if "secret" in volume]
        assert len(secrets) == ("SLIPWAY_CREDENTIALS_FILE" in variables)
        for secret in secrets:
            assert secret["defaultMode"] == 0o400
            assert self.pod(rendered)["securityContext"]["fsGroup"], "or the server could not read it"
            (item,) = secret["items"]
            assert variables["SLIPWAY_CREDENTIALS_FILE"] == f"/etc/slipway/{item['path']}"
        if made := rendered.get("Secret"):
            assert secrets[0]["secretName"] == made["metadata"]["name"]
            assert item["key"] in made["stringData"]

    def test_objects_outlive_the_chart(self, rendered):
        claim = rendered.get("PersistentVolumeClaim")
        if claim:
            assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
            shared = claim["spec"]["accessModes"] == ["ReadWriteMany"]
            strategy = rendered["Deployment"]["spec"]["strategy"]["type"]
            assert strategy == ("RollingUpdate" if shared else "Recreate")


@needs_helm
@pytest.mark.parametrize(
    ("values", "says"),
    [
        ("replicas=-1", "minimum"),
        ("nonsense=1", "nonsense"),
        ("options.dir=/x", "invalid propertyName 'dir'"),
        ("options.listen=:1", "invalid propertyName 'listen'"),
        ("options.a.b=c", "options"),
        ("image.pullPolicy=never", "pullPolicy"),
        ("data.claim.accessModes={ReadWriteOnce}", "ReadWriteMany"),
        ("data.existingClaim=a,data.volume.emptyDir.medium=Memory", "give one of them"),
        ("rootKeys.accessKey=abc", "go together"),
        ("rootKeys.existingSecret=a,rootKeys.accessKey=b,rootKeys.secretKey=c", "existingSecret or the keys"),
        ("rootKeys.existingSecret=a,podSecurityContext.fsGroup=null", "fsGroup"),
        ("ingress.enabled=true", "ingress.hosts"),
    ],
)
def test_what_cannot_work_is_refused(values, says):
    done = render("--set", values)
    assert done.returncode != 0
    assert says in done.stderr


def deployment(*values: str) -> dict:
    done = render(*(part for value in values for part in ("--set", value)))
    assert done.returncode == 0, done.stderr
    documents = filter(None, yaml.safe_load_all(done.stdout))
    return next(document for document in documents if document["kind"] == "Deployment")


@needs_helm
def test_pods_tell_nothing_of_the_secret_key():
    """Nor a digest of it, which is as good as the key if that is one that can be guessed."""
    first = deployment("rootKeys.accessKey=somebody", "rootKeys.secretKey=one")
    assert first == deployment("rootKeys.accessKey=somebody", "rootKeys.secretKey=other")
    assert first != deployment("rootKeys.accessKey=another", "rootKeys.secretKey=one"), (
        "these need other pods"
    )


@needs_helm
def test_on_and_off_are_what_they_say(tmp_path):
    """YAML's `off` is false, and what is false was left out: SigV2 stayed on."""
    help_text = subprocess.run([binary(), "serve", "--help"], capture_output=True, text=True).stdout
    choices = re.findall(r"--([\w-]+) <[^>]*>\n((?:\n|          .*\n)+)", help_text)
    with_off = {name for name, text in choices if re.search(r"possible values: .*\boff\b|- off", text)}
    assert {"sendfile", "sigv2"} <= with_off
    for name in with_off | {"log"}:
        values = tmp_path / "values.yaml"
        values.write_text(f"options: {{{name}: off}}\n")
        documents = list(filter(None, yaml.safe_load_all(render("--values", values).stdout)))
        pod = next(document for document in documents if document["kind"] == "Deployment")["spec"]["template"]
        assert pod["spec"]["containers"][0]["args"] == ["serve", f"--{name}=off"]
    values.write_text("options: {sendfile: on, rehash-on-read: on, chown: off}\n")
    found = render("--values", values).stdout
    assert '"--sendfile=on"' in found and '"--rehash-on-read"' in found and "chown" not in found


@needs_helm
def test_nobody_reaches_the_operations_unless_named():
    done = render("--set", "networkPolicy.enabled=true")
    documents = filter(None, yaml.safe_load_all(done.stdout))
    policy = next(document for document in documents if document["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "s3"}]}]


@needs_helm
def test_secrets_of_any_characters(make_server, tmp_path):
    """The file that is made of them is one that the server reads."""
    secret = "quo\"ted\\se{cr}et,<&>'=#"
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"rootKeys": {"accessKey": "somebody", "secretKey": secret}}))
    documents = yaml.safe_load_all(render("--values", values).stdout)
    (made,) = [document for document in documents if document["kind"] == "Secret"]
    file = tmp_path / "credentials.toml"
    file.write_text(made["stringData"]["credentials.toml"])
    file.chmod(0o600)
    server = make_server("--credentials-file", str(file), env={})
    raw = server.raw
    assert raw.get("/", signer=raw.signer.with_(access_key="somebody", secret_key=secret)).status == 200
