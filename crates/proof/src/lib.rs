//! Proofs of verdicts: an in-toto statement with the predicate "test result", in a DSSE envelope, signed with Ed25519.
//!
//! Bytes in, values out. Nothing here reads a file, asks git or runs anything: `towline-app` takes the facts from the store, keeps
//! the keys, and compares a proof with a repository. A new key takes its randomness from the system.

mod canonical;
mod envelope;
mod key;
mod opened;
mod statement;

pub use self::canonical::{canonical_json, sha256, sha256_of_json};
pub use self::envelope::{Envelope, EnvelopeError, PAYLOAD_TYPE, Signature, sign};
pub use self::key::{KeyError, KeyId, PublicKey, SigningKey};
pub use self::opened::{NotOpened, Opened, Signer, open};
pub use self::statement::{
    CheckFacts, Facts, GoalFacts, LONGEST_PROOF, OutputFacts, PREDICATE_TYPE, Predicate, ProtectionFacts,
    Resource, STATEMENT_TYPE, SetupFacts, SignerFacts, Statement, StatementError, TestOutcome, TrustFacts,
    VerdictTimes, Versions,
};
