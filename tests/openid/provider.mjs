// An OpenID provider (npm's oidc-provider) for tests/test_openid.py, which starts it with a file of
// its configuration: the issuer, the port, the keys, the clients, the seconds that a token lasts,
// what is said of everybody, and key and certificate for TLS. Anybody logs in by a name.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { Provider } from "oidc-provider";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const provider = new Provider(given.issuer, {
  clients: given.clients.map((client_id) => ({
    client_id,
    redirect_uris: ["https://client.lab/back"],
    response_types: ["id_token"],
    grant_types: ["implicit"],
    token_endpoint_auth_method: "none",
    id_token_signed_response_alg: given.algorithm,
  })),
  responseTypes: ["id_token"],
  enabledJWA: { idTokenSigningAlgValues: [given.algorithm] },
  jwks: { keys: given.keys },
  cookies: { keys: ["a key of cookies"] },
  claims: { openid: ["sub", ...Object.keys(given.claims)] },
  conformIdTokenClaims: false,
  ttl: { IdToken: given.seconds, Interaction: 600, Session: 600, Grant: 600 },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId, ...given.claims }) }),
});
const answer = provider.callback();
// Below the path of the issuer, if it has one.
const path = new URL(given.issuer).pathname.replace(/\/$/, "");
const listener = (request, response) => {
  if (path && request.url.startsWith(`${path}/`)) {
    request.originalUrl = request.url;
    request.url = request.url.slice(path.length);
  }
  return answer(request, response);
};
const server = given.tls
  ? createSecureServer({ key: readFileSync(given.tls.key), cert: readFileSync(given.tls.certificate) }, listener)
  : createServer(listener);
server.listen(given.port, "127.0.0.1", () => console.log("ready"));
