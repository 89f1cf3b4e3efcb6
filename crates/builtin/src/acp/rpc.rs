//! The protocol's own errors beside those of JSON-RPC, and parsing of parameters.

use serde::Deserialize;
use serde_json::value::RawValue;
pub(super) use towline_agent::jsonrpc::RpcError as Refusal;

pub(super) const AUTH_REQUIRED: i64 = -32_000;
const NOT_FOUND: i64 = -32_002;

/// The refusal for an unknown session.
pub(super) fn no_such_session(id: &str) -> Refusal {
    Refusal::new(NOT_FOUND, format!("no such session: {id}"))
}

/// Parses the parameters of a request.
pub(super) fn params<'a, T: Deserialize<'a>>(method: &str, params: &'a RawValue) -> Result<T, Refusal> {
    serde_json::from_str(params.get())
        .map_err(|error| Refusal::invalid_params(format!("{method}: the parameters cannot be read: {error}")))
}
