//! An answer on its way: the bytes of a body in, the answer out, whatever its format and however it is cut.
//!
//! It has no socket and no clock, so that every stream can be tested byte by byte.

use crate::Answer;
use crate::sse::{Framer, MAX_EVENT_BYTES, TooLong};
use crate::wire::{Decode, OnDelta, Trouble};

/// The longest answer. No model writes as much.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// How a provider sends its answer.
#[derive(Debug)]
enum Form {
    Stream(Framer),
    /// One JSON value, though a stream was asked for.
    Whole(Vec<u8>),
}

/// Reads one answer.
pub(crate) struct Reader {
    form: Form,
    decoder: Box<dyn Decode>,
    bytes: usize,
}

impl Reader {
    /// Reads a stream of events.
    pub(crate) fn of_stream(decoder: Box<dyn Decode>) -> Self {
        Self { form: Form::Stream(Framer::default()), decoder, bytes: 0 }
    }

    /// Reads an answer in one piece.
    pub(crate) fn of_whole(decoder: Box<dyn Decode>) -> Self {
        Self { form: Form::Whole(Vec::new()), decoder, bytes: 0 }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(too_long(MAX_ANSWER_BYTES));
        }
        match &mut self.form {
            Form::Whole(body) => body.extend_from_slice(bytes),
            Form::Stream(framer) => {
                for data in framer.push(bytes).map_err(|TooLong| too_long(MAX_EVENT_BYTES))? {
                    self.decoder.event(&data, &mut *on_delta)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the answer is whole, though more bytes may come.
    pub(crate) fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// The answer, after the last byte. There is none unless the provider reported that it is whole.
    pub(crate) fn finish(mut self, on_delta: OnDelta<'_>) -> Result<Answer, Trouble> {
        if let Form::Whole(body) = &self.form {
            let body = serde_json::from_slice(body)
                .map_err(|error| Trouble::Unreadable(format!("its answer is no whole JSON ({error})")))?;
            self.decoder.whole(&body, on_delta)?;
        }
        let broke_off = || Trouble::Unreadable("its answer broke off before the end".to_owned());
        self.decoder.finish().ok_or_else(broke_off)
    }
}

fn too_long(limit: usize) -> Trouble {
    Trouble::Unreadable(format!("it sent more than {} MiB for one answer", limit / 1024 / 1024))
}
