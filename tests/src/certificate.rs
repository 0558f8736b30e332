//! Certificates for a lab of a test.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// The files of a lab that encrypts.
pub struct Certificate {
    /// Its certificate.
    pub cert: PathBuf,
    /// The private key of that.
    pub key: PathBuf,
    /// The certificate of who vouches for it.
    pub ca: PathBuf,
}

impl Certificate {
    /// Of a lab that is called `names`, by an authority of its own, in files of `folder`.
    pub fn of(names: &[&str], folder: &Path) -> Certificate {
        let params = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            CertificateParams::new(names.collect::<Vec<_>>()).expect("names")
        };
        let mut authority = params(&[]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().expect("a key");
        let ca = authority
            .self_signed(&authority_key)
            .expect("a certificate");
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("a key");
        let cert = params(names).signed_by(&key, &issuer);
        let cert = cert.expect("a certificate");
        let written = |name: &str, pem: String| {
            let path = folder.join(name);
            std::fs::write(&path, pem).expect("room");
            path
        };
        Certificate {
            cert: written("cert.pem", cert.pem()),
            key: written("key.pem", key.serialize_pem()),
            ca: written("ca.pem", ca.pem()),
        }
    }

    /// The lines of a configuration that name it.
    pub fn configuration(&self) -> String {
        format!("cert = {:?}\nkey = {:?}\n", self.cert, self.key)
    }
}
