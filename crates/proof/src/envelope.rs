//! The envelope around a statement: DSSE, version 1.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::key::{KeyError, KeyId, PublicKey, SigningKey};
use crate::statement::LONGEST_PROOF;

/// What is in the envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// A payload with its signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub payload_type: String,
    pub payload: Vec<u8>,
    pub signatures: Vec<Signature>,
}

/// A signature of the payload and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The key that is said to have made it.
    pub key: KeyId,
    pub bytes: Vec<u8>,
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    #[error("it is longer than {} MiB", LONGEST_PROOF >> 20)]
    TooLong,
    #[error("it is no DSSE envelope: {0}")]
    NotJson(String),
    #[error("its {0} is not base64")]
    NotBase64(&'static str),
    #[error("it has no signature")]
    Unsigned,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<WireSignature>,
}

#[derive(Serialize, Deserialize)]
struct WireSignature {
    keyid: KeyId,
    sig: String,
}

/// Puts a payload into an envelope that this key signs.
pub fn sign(payload: Vec<u8>, key: &SigningKey) -> Result<Envelope, KeyError> {
    let mut envelope = Envelope { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures: Vec::new() };
    let signature = Signature { key: key.public()?.id(), bytes: key.sign(&envelope.signed_bytes()) };
    envelope.signatures.push(signature);
    Ok(envelope)
}

impl Envelope {
    /// Reads what [`Envelope::json`] or another program has written. The id of each signature's key must be there.
    pub fn read(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        if bytes.len() as u64 > LONGEST_PROOF {
            return Err(EnvelopeError::TooLong);
        }
        let wire: Wire =
            serde_json::from_slice(bytes).map_err(|error| EnvelopeError::NotJson(error.to_string()))?;
        let decoded = |text: &str, what| STANDARD.decode(text).map_err(|_| EnvelopeError::NotBase64(what));
        let signature = |signature: WireSignature| {
            Ok(Signature { key: signature.keyid, bytes: decoded(&signature.sig, "signature")? })
        };
        let signatures: Vec<_> = wire.signatures.into_iter().map(signature).collect::<Result<_, _>>()?;
        if signatures.is_empty() {
            return Err(EnvelopeError::Unsigned);
        }
        Ok(Self { payload_type: wire.payload_type, payload: decoded(&wire.payload, "payload")?, signatures })
    }

    /// One line of JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        let signature = |signature: &Signature| WireSignature {
            keyid: signature.key.clone(),
            sig: STANDARD.encode(&signature.bytes),
        };
        serde_json::to_string(&Wire {
            payload_type: self.payload_type.clone(),
            payload: STANDARD.encode(&self.payload),
            signatures: self.signatures.iter().map(signature).collect(),
        })
    }

    /// What is signed: the pre-authentication encoding of the payload and its type.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let (kind, payload) = (&self.payload_type, &self.payload);
        let head = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len());
        [head.as_bytes(), payload].concat()
    }

    /// Whether this key made that signature of it.
    pub fn is_signed_by(&self, key: &PublicKey, signature: &Signature) -> bool {
        key.verifies(&self.signed_bytes(), &signature.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of the DSSE specification.
    #[test]
    fn what_is_signed_is_as_the_specification_has_it() {
        let envelope = Envelope {
            payload_type: "http://example.com/HelloWorld".into(),
            payload: b"hello world".to_vec(),
            signatures: Vec::new(),
        };
        let expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world";
        assert_eq!(envelope.signed_bytes(), expected);
    }

    #[test]
    fn what_is_no_envelope_is_named() {
        let unsigned = r#"{"payloadType":"a","payload":"YQ==","signatures":[]}"#;
        let bad = r#"{"payloadType":"a","payload":"YR==","signatures":[{"keyid":"k","sig":"YQ=="}]}"#;
        let without_key = r#"{"payloadType":"a","payload":"YQ==","signatures":[{"sig":"YQ=="}]}"#;
        let words = |text: &str| Envelope::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(words(unsigned), "it has no signature");
        assert_eq!(words(bad), "its payload is not base64");
        assert!(words(without_key).contains("missing field `keyid`"));
        assert!(words("no JSON").starts_with("it is no DSSE envelope: "));
        let long = vec![b' '; LONGEST_PROOF as usize + 1];
        assert_eq!(Envelope::read(&long), Err(EnvelopeError::TooLong));
    }
}
