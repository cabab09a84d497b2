//! Connections to the directory: TCP, TLS, and who they are made as.
//!
//! The crate `ldap3` takes what a server sends for well-formed, and panics or overflows its stack
//! where it is not. So it is given only servers that have shown their certificate: StartTLS, whose
//! answer anybody on the way could send, is read here. (Without TLS, which is a site's own choice,
//! it reads what it gets.) Its panics end a task of their own ([`super::Ldap`]).

use std::sync::Arc;

use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, StdStream};
use rustls::ClientConfig;
use s3_client::tls_config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;

use super::settings::{LdapServer, LdapSettings, Protection};
use crate::limits::STARTTLS_ANSWER_BYTES_MAX;

/// The advice in the error of a system without trusted certificates.
const WITHOUT_ROOTS: &str = "name a file with some by --ldap-ca";

/// The request for StartTLS: message 1, an ExtendedRequest with the name 1.3.6.1.4.1.1466.20037.
///
/// Source: RFC 4511, 4.14.1.
const STARTTLS: &[u8] = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
/// The bytes between the length of the answer and its result: message 1, an ExtendedResponse.
const MESSAGE_1: &[u8] = b"\x02\x01\x01";
const EXTENDED_RESPONSE: u8 = 0x78;
const SUCCESS: &[u8] = b"\x0a\x01\x00";

/// Reads the files of certificates that settings name.
pub fn config(settings: &LdapSettings) -> Result<ClientConfig, String> {
    tls_config(&settings.trust, settings.certificate.as_ref(), WITHOUT_ROOTS)
}

/// Connects to the first server that can be reached. Nobody is bound yet.
pub async fn connect(settings: &Arc<LdapSettings>) -> Result<Ldap, String> {
    let mut failed = Vec::new();
    for server in &settings.servers {
        match connect_to(settings, server).await {
            Ok(connection) => return Ok(connection),
            Err(why) => failed.push(format!("{server}: {why}")),
        }
    }
    Err(failed.join("; "))
}

async fn connect_to(settings: &Arc<LdapSettings>, server: &LdapServer) -> Result<Ldap, String> {
    let protection = settings.protection(server);
    let stream = TcpStream::connect((server.host(), server.port())).await;
    let mut stream = stream.map_err(|e| format!("it cannot be connected to: {e}"))?;
    // Questions are small, and wait for their answers.
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let mut how = LdapConnSettings::new();
    if protection != Protection::None {
        let settings = Arc::clone(settings);
        // Reads the files of certificates, which may be others by now.
        let config = spawn_blocking(move || config(&settings)).await.map_err(|e| e.to_string())??;
        how = how.set_config(Arc::new(config));
    }
    if protection == Protection::StartTls {
        start_tls(&mut stream).await?;
    }
    let stream = stream.into_std().map_err(|e| e.to_string())?;
    let how = how.set_std_stream(StdStream::Tcp(stream));
    // From here on it is as if TLS had been there from the beginning.
    let scheme = if protection == Protection::None { "ldap" } else { "ldaps" };
    let url = format!("{scheme}://{}", server.to_string().rsplit_once("://").map_or("", |(_, rest)| rest));
    let (connection, ldap) = LdapConnAsync::with_settings(how, &url).await.map_err(|e| e.to_string())?;
    tokio::spawn(async move {
        if let Err(why) = connection.drive().await {
            tracing::debug!(%why, "a connection to the directory has ended");
        }
    });
    Ok(ldap)
}

/// Asks for TLS, and reads the answer to its last byte and no further.
async fn start_tls(stream: &mut TcpStream) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("StartTLS: {e}");
    stream.write_all(STARTTLS).await.map_err(failed)?;
    let mut head = [0; 2];
    stream.read_exact(&mut head).await.map_err(failed)?;
    let length = match head[1] {
        short if short < 0x80 => usize::from(short),
        long => {
            let mut bytes = [0; 4];
            let count = usize::from(long & 0x7f);
            let bytes = bytes.get_mut(..count).ok_or("StartTLS: the answer is too long")?;
            stream.read_exact(bytes).await.map_err(failed)?;
            bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        }
    };
    if head[0] != 0x30 || length > STARTTLS_ANSWER_BYTES_MAX {
        return Err("StartTLS: the answer is none of LDAP, or too long".to_owned());
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await.map_err(failed)?;
    if has_begun(&answer) { Ok(()) } else { Err("StartTLS: the server refused it".to_owned()) }
}

/// True for an answer that says success.
fn has_begun(answer: &[u8]) -> bool {
    let Some([kind, rest @ ..]) = answer.strip_prefix(MESSAGE_1) else { return false };
    // The length of the response: one byte, or several whose number is in the first.
    let result = match rest {
        [short, rest @ ..] if *short < 0x80 => rest,
        [long, rest @ ..] => rest.get(usize::from(long & 0x7f)..).unwrap_or_default(),
        [] => return false,
    };
    *kind == EXTENDED_RESPONSE && result.starts_with(SUCCESS)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_request_is_well_formed() {
        assert_eq!(STARTTLS.len(), 2 + usize::from(STARTTLS[1]));
        assert_eq!(STARTTLS.len(), 7 + usize::from(STARTTLS[6]));
        assert_eq!(STARTTLS.len(), 9 + usize::from(STARTTLS[8]));
    }

    /// Answers with some bytes, and says what becomes of that.
    async fn answered(answer: &'static [u8]) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(answer).await.unwrap();
        drop(server);
        start_tls(&mut stream).await
    }

    #[tokio::test]
    async fn answers_to_starttls() {
        // As slapd and Samba send them.
        let slapd = b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00";
        let long =
            b"\x30\x84\x00\x00\x00\x10\x02\x01\x01\x78\x84\x00\x00\x00\x07\x0a\x01\x00\x04\x00\x04\x00";
        for answer in [&slapd[..], &long[..]] {
            assert_eq!(answered(answer).await, Ok(()));
        }
        for (answer, wanted) in [
            (&b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x02\x04\x00\x04\x00"[..], "refused"),
            (&b"\x30\x0c\x02\x01\x02\x78\x07\x0a\x01\x00\x04\x00\x04\x00"[..], "refused"),
            (&b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00"[..], "refused"),
            (&b"\x30\x03\x02\x01\x01"[..], "refused"),
            (&b"\x30\x05\x02\x01\x01\x78\x84"[..], "refused"),
            (&b"\x30\x84\x7f\xff\xff\xff"[..], "too long"),
            (&b"\x30\x88\x00\x00\x00\x00\x00\x00\x00\x01"[..], "too long"),
            (&b"HTTP/1.1 400"[..], "none of LDAP"),
            (&b"\x30"[..], "eof"),
            (&b""[..], "eof"),
        ] {
            let why = answered(answer).await.unwrap_err();
            assert!(why.contains(wanted), "{answer:?}: {why}");
        }
    }
}
