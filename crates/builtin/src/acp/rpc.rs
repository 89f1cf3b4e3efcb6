//! The refusals of the protocol that JSON-RPC itself does not have, and reading parameters.

use serde::Deserialize;
use serde_json::value::RawValue;
pub(super) use towline_agent::jsonrpc::RpcError as Refusal;

/// Nobody has signed in.
const AUTH_REQUIRED: i64 = -32_000;
/// There is no such thing.
const NOT_FOUND: i64 = -32_002;

/// A key is missing.
pub(super) fn auth_required(message: impl Into<String>) -> Refusal {
    Refusal::new(AUTH_REQUIRED, message)
}

/// There is no such session.
pub(super) fn no_such_session(id: &str) -> Refusal {
    Refusal::new(NOT_FOUND, format!("no such session: {id}"))
}

/// Reads the parameters of a request.
pub(super) fn params<'a, T: Deserialize<'a>>(method: &str, params: &'a RawValue) -> Result<T, Refusal> {
    serde_json::from_str(params.get())
        .map_err(|error| Refusal::invalid_params(format!("{method}: the parameters cannot be read: {error}")))
}
