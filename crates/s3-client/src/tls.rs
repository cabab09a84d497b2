//! TLS: the certificates that are trusted, and the verification of servers' certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::sentence::Result;

/// The files in which systems keep the certificates that they trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The rule about which servers' certificates are trusted.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// A PEM file with the certificates of authorities, used in place of the system's file.
    pub ca: Option<PathBuf>,
    /// True if any certificate is trusted.
    pub insecure: bool,
}

/// The certificate by which a client proves its identity: PEM files with its chain and its key.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The file with the certificate chain.
    pub chain: PathBuf,
    /// The file with the private key.
    pub key: PathBuf,
}

/// Makes the TLS configuration of a client, for protocols other than HTTP. `without_roots` is the
/// same as for [`tls_client`].
pub fn tls_config(
    trust: &Trust,
    own: Option<&ClientCertificate>,
    without_roots: &str,
) -> Result<ClientConfig> {
    let builder = verifying(trust, without_roots)?;
    let Some(own) = own else { return Ok(builder.with_no_client_auth()) };
    let bad = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let chain = CertificateDer::pem_file_iter(&own.chain).map_err(|e| bad(&own.chain, &e))?;
    let chain = chain.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| bad(&own.chain, &e))?;
    if chain.is_empty() {
        return Err(bad(&own.chain, &"the file contains no certificates"));
    }
    let key = PrivateKeyDer::from_pem_file(&own.key).map_err(|e| bad(&own.key, &e))?;
    builder.with_client_auth_cert(chain, key).map_err(|e| bad(&own.key, &e))
}

/// Returns a TLS connector for connections to `host`, and the name that the server's certificate
/// must have. `without_roots` is the advice in the error for a system without trusted certificates.
pub fn tls_client(
    host: &str,
    trust: &Trust,
    without_roots: &str,
) -> Result<(TlsConnector, ServerName<'static>)> {
    Ok((connector(trust, without_roots)?, server_name(host)?))
}

fn server_name(host: &str) -> Result<ServerName<'static>> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| format!("{host:?} is not a name that a certificate can have"))
}

fn connector(trust: &Trust, without_roots: &str) -> Result<TlsConnector> {
    Ok(TlsConnector::from(Arc::new(verifying(trust, without_roots)?.with_no_client_auth())))
}

fn verifying(trust: &Trust, without_roots: &str) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let trusted = if trust.insecure {
        None
    } else {
        let file = roots(trust, &SYSTEM_ROOTS, without_roots)?;
        Some(Trusted::new(file, trust.ca.is_some(), &provider)?)
    };
    let verifier = Arc::new(Verifier { provider: Arc::clone(&provider), trusted });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|e| e.to_string())?.dangerous().with_custom_certificate_verifier(verifier))
}

/// Returns the file with the certificates that are trusted: the file of `--ca`, or the system's.
fn roots<'a>(trust: &'a Trust, system: &'a [&str], without_roots: &str) -> Result<&'a Path> {
    let of_system = || system.iter().map(Path::new).find(|path| path.exists());
    let file = trust.ca.as_deref().or_else(of_system);
    file.ok_or_else(|| format!("this system has no list of certificate authorities: {without_roots}"))
}

/// The certificates that `--ca` or the system trusts.
#[derive(Debug)]
struct Trusted {
    authorities: Arc<WebPkiServerVerifier>,
    /// The certificates in the file of `--ca`. A server may present one of them as its own:
    /// self-signed certificates are often marked as authorities, which the rules for chains forbid
    /// for a server's certificate.
    named: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn new(file: &Path, is_named: bool, provider: &Arc<CryptoProvider>) -> Result<Self> {
        let bad = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let certificates = CertificateDer::pem_file_iter(file).map_err(|e| bad(&e))?;
        let certificates = certificates.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| bad(&e))?;
        let mut roots = RootCertStore::empty();
        // A system's list may have some that rustls does not take.
        let (taken, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        if taken == 0 || (is_named && taken < certificates.len()) {
            return Err(bad(&"the file contains no certificates, or damaged ones"));
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let authorities = authorities.build().map_err(|e| bad(&e))?;
        Ok(Self { authorities, named: if is_named { certificates } else { Vec::new() } })
    }
}

/// Verifies that a server's certificate is trusted. If any certificate is trusted, it verifies only
/// that the server has the certificate's key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    trusted: Option<Trusted>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        match &self.trusted {
            None => {}
            Some(trusted) if trusted.named.contains(shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            }
            Some(trusted) => return trusted.authorities.verify_server_cert(shown, chain, name, ocsp, now),
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_of_the_system() {
        let none = Trust::default();
        assert_eq!(roots(&none, &["/nonexistent", "/"], ""), Ok(Path::new("/")));
        let error = roots(&none, &["/nonexistent"], "do this").unwrap_err();
        assert_eq!(error, "this system has no list of certificate authorities: do this");
        let named = Trust { ca: Some("/named".into()), insecure: false };
        assert_eq!(roots(&named, &["/"], ""), Ok(Path::new("/named")));
    }
}
