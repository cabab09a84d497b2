//! TLS with one or more certificates, which are chosen by the client's SNI and read again by a
//! reload.

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

use crate::text::unreadable;

/// The certificates in use.
pub struct Certificates {
    current: ArcSwap<Vec<Arc<CertifiedKey>>>,
}

/// Certificates that were read, but are not in use yet.
pub struct Prepared(Vec<Arc<CertifiedKey>>);

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads each certificate chain with the key at the same index; `None` if there are none.
    pub fn read(chains: &[PathBuf], keys: &[PathBuf]) -> Result<Option<Arc<Self>>, String> {
        let read = read_all(chains, keys)?;
        Ok((!read.is_empty()).then(|| Arc::new(Self { current: ArcSwap::from_pointee(read) })))
    }

    /// Reads the same or other files again. Also returns whether they contain anything new.
    pub fn prepare(&self, chains: &[PathBuf], keys: &[PathBuf]) -> Result<(Prepared, bool), String> {
        let read = read_all(chains, keys)?;
        if read.is_empty() {
            return Err(
                "--tls-cert is no longer given, but a reload cannot turn TLS off: restart the server for that"
                    .to_owned(),
            );
        }
        let current = self.current.load();
        let same = |(one, other): (&Arc<CertifiedKey>, &Arc<CertifiedKey>)| one.cert == other.cert;
        let changed = current.len() != read.len() || !current.iter().zip(&read).all(same);
        Ok((Prepared(read), changed))
    }

    /// Uses `prepared` from now on.
    pub fn replace(&self, prepared: Prepared) {
        self.current.store(Arc::new(prepared.0));
    }

    /// Makes an acceptor that offers HTTP/1.1 with these certificates.
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

fn read_all(chains: &[PathBuf], keys: &[PathBuf]) -> Result<Vec<Arc<CertifiedKey>>, String> {
    if chains.len() != keys.len() {
        return Err(format!(
            "{} --tls-cert but {} --tls-key: give one key for each certificate",
            chains.len(),
            keys.len()
        ));
    }
    chains.iter().zip(keys).map(|(chain, key)| read_one(chain, key)).collect()
}

fn read_one(chain_file: &PathBuf, key_file: &PathBuf) -> Result<Arc<CertifiedKey>, String> {
    let says = |file: &PathBuf, e: &dyn fmt::Display| {
        let flag = if file == chain_file { "--tls-cert" } else { "--tls-key" };
        format!("{flag} {}: {e}", file.display())
    };
    let chain = CertificateDer::pem_file_iter(chain_file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| says(chain_file, &pem_error(e)))?;
    if chain.is_empty() {
        return Err(says(
            chain_file,
            &"the file contains no certificate: expected PEM, which begins with -----BEGIN CERTIFICATE-----",
        ));
    }
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|e| match e {
        pem::Error::NoItemsFound => says(
            key_file,
            &"the file contains no private key that can be read: expected PEM; a key with a password must be stored \
                without it",
        ),
        e => says(key_file, &pem_error(e)),
    })?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map(Arc::new).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => says(
            key_file,
            &format_args!(
                "the key does not belong to the certificate in {}: give the keys in the order of the certificates",
                chain_file.display()
            ),
        ),
        e => says(key_file, &e),
    })
}

fn pem_error(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => unreadable(&error),
        error => format!("{error}: the file must be in PEM format"),
    }
}
