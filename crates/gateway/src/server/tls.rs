//! TLS: one or more certificates, chosen by the client's SNI, read again on SIGHUP.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

/// The certificates in use.
pub struct Certificates {
    files: Vec<(PathBuf, PathBuf)>,
    current: ArcSwap<Vec<Arc<CertifiedKey>>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads each certificate chain with the key at the same place; `None` where there are none.
    pub fn read(chains: &[PathBuf], keys: &[PathBuf]) -> Result<Option<Arc<Self>>, String> {
        if chains.len() != keys.len() {
            return Err(format!(
                "{} --tls-cert but {} --tls-key: give one key for each certificate",
                chains.len(),
                keys.len()
            ));
        }
        if chains.is_empty() {
            return Ok(None);
        }
        let files: Vec<_> = chains.iter().cloned().zip(keys.iter().cloned()).collect();
        let current = ArcSwap::from_pointee(read_all(&files)?);
        Ok(Some(Arc::new(Self { files, current })))
    }

    /// Reads the files again. If any is bad, all stay as they were.
    pub fn reload(&self) -> Result<(), String> {
        self.current.store(Arc::new(read_all(&self.files)?));
        Ok(())
    }

    /// An acceptor that offers HTTP/1.1 with these certificates.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let all = self.current.load();
        let named = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let fits = |certified: &&Arc<CertifiedKey>, name: &ServerName<'_>| {
            let parsed = certified.cert.first().and_then(|leaf| ParsedCertificate::try_from(leaf).ok());
            parsed.is_some_and(|leaf| verify_server_name(&leaf, name).is_ok())
        };
        let fitting = named.and_then(|name| all.iter().find(|certified| fits(certified, &name)));
        fitting.or_else(|| all.first()).cloned()
    }
}

fn read_all(files: &[(PathBuf, PathBuf)]) -> Result<Vec<Arc<CertifiedKey>>, String> {
    files.iter().map(|(chain, key)| read_one(chain, key)).collect()
}

fn read_one(chain_file: &PathBuf, key_file: &PathBuf) -> Result<Arc<CertifiedKey>, String> {
    let says = |file: &PathBuf, e: &dyn fmt::Display| format!("{}: {e}", file.display());
    let chain = CertificateDer::pem_file_iter(chain_file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| says(chain_file, &e))?;
    if chain.is_empty() {
        return Err(says(chain_file, &"no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|e| match e {
        pem::Error::NoItemsFound => {
            says(key_file, &"no private key in it; one with a password cannot be read")
        }
        e => says(key_file, &e),
    })?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map(Arc::new).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => says(
            key_file,
            &format_args!("this key does not belong to the certificate in {}", chain_file.display()),
        ),
        e => says(key_file, &e),
    })
}
