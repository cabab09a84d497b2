# Varnish (7.1 and later) before one gateway, or before HAProxy with several. What tests/test_proxies.py runs is this
# file with another address, and this command with other ones:
#
#   varnishd -F -a :8080 -f /etc/varnish/slipway.vcl -s malloc,1G -p http_gzip_support=off -p http_max_hdr=256 -p http_req_hdr_len=32k -p http_req_size=48k -p workspace_client=192k -p workspace_backend=192k -p pipe_timeout=300
#
# Without http_gzip_support=off, objects that are stored compressed would be unpacked for who did not ask for gzip; the
# other limits are as long as a gateway's heads.
#
# Only GETs of whole objects without an Authorization header are kept: anonymous ones, and those of presigned URLs. Even
# of these Varnish keeps the bytes, not the decision: it asks the gateway each time, with If-None-Match. So the
# signature, its expiry, permissions and the object's ETag are looked at for each request, and an object that was
# replaced is not shown. What is spared are the bytes between gateway and Varnish, and the storage's reads. The key is the
# whole URL, signature included: two URLs of one object are kept twice.
#
# All else goes through a tunnel, byte by byte: signed requests, writes, ranges, HEAD (which Varnish would make a GET).
# Each of these has a connection of its own: Varnish sees no further request in a tunnel, and a client could say there
# for itself who it is.
#
# For gateways with --client-address x-forwarded-for --trusted-proxy and this machine's address: Varnish adds the client to
# X-Forwarded-For by itself. With HAProxy behind it, HAProxy has to add as well (`option forwardfor` instead of its
# http-request set-header X-Forwarded-For), and both addresses have to be listed.
#
# Logs without the query, which for presigned URLs is as good as a key: varnishncsa -F '%h %t "%m %U %H" %s %b'

vcl 4.1;

import std;

backend slipway {
    .host = "127.0.0.1";
    .port = "9000";
    .connect_timeout = 2s;
    .first_byte_timeout = 300s;
    .between_bytes_timeout = 70s;
}

sub vcl_recv {
    if (req.method == "PRI") {
        return (synth(405));
    }
    # What a client says of itself goes. Where a proxy before Varnish has TLS, and sets it, this line goes instead.
    set req.http.X-Forwarded-Proto = "http";
    if (req.method != "GET" || req.restarts > 0 ||
        req.http.Authorization || req.http.Cookie || req.http.Range ||
        req.http.Content-Length || req.http.Transfer-Encoding ||
        req.http.If-Match || req.http.If-Unmodified-Since ||
        req.http.x-amz-checksum-mode || req.http.x-amz-expected-bucket-owner || req.http.x-amz-request-payer ||
        req.http.x-amz-server-side-encryption-customer-algorithm) {
        return (pipe);
    }
    return (hash);
}

sub vcl_pipe {
    # The gateway closes after its answer, and so does the tunnel.
    set bereq.http.Connection = "close";
    return (pipe);
}

sub vcl_backend_fetch {
    if (bereq.retries > 0) {
        unset bereq.http.If-None-Match;
        unset bereq.http.If-Modified-Since;
    }
    return (fetch);
}

sub vcl_backend_response {
    # The same bytes, put or copied again with other metadata: a 304 does not tell of those.
    if (beresp.was_304 && beresp.http.Last-Modified != bereq.http.If-Modified-Since) {
        return (retry);
    }
    # To keep it, it would have to be fetched faster than the client takes it: it goes through a tunnel instead.
    if (std.integer(beresp.http.Content-Length, 0) > 67108864) {
        return (abandon);
    }
    # As it is: compressed objects are neither tested nor unpacked.
    set beresp.filters = "";
    set beresp.grace = 0s;
    # What was written less than two seconds ago may get other metadata within the same second of Last-Modified.
    if (beresp.status == 200 && beresp.http.ETag && beresp.http.Content-Length &&
        std.time(beresp.http.Last-Modified, now) + 2s < std.time(beresp.http.Date, now)) {
        # Kept for a day, and asked about each time. (Varnish asks about nothing whose ttl was 0.) With some seconds it
        # would not ask for as long: faster, and URLs outlive their expiry, and objects their replacement, by as much.
        set beresp.ttl = 0.001ms;
        set beresp.keep = 1d;
    } else {
        set beresp.ttl = 0s;
        set beresp.uncacheable = true;
    }
    return (deliver);
}

sub vcl_synth {
    if (resp.status == 503 && req.restarts == 0) {
        return (restart);
    }
}
