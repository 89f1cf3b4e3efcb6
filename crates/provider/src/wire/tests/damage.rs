//! Streams that are cut, broken off, or no streams at all.

use proptest::prelude::*;

use super::super::Trouble;
use super::{Sample, decoder_of, read, streams};
use crate::WireFormat;
use crate::reader::Reader;

#[test]
fn a_stream_cut_between_any_two_bytes_gives_the_same_answer() {
    for sample in streams::all() {
        let bytes = sample.stream.as_bytes();
        let of = |pieces: &[&[u8]]| read(Reader::of_stream(decoder_of(sample.format)), pieces);
        let expected = (Ok(sample.answer()), sample.deltas.clone());
        for place in 0..=bytes.len() {
            let (before, behind) = bytes.split_at(place);
            assert_eq!(of(&[before, behind]), expected, "{:?} {} at {place}", sample.format, sample.name);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(of(&single), expected, "{:?} {} in single bytes", sample.format, sample.name);
        let returns = sample.stream.replace('\n', "\r\n");
        assert_eq!(of(&[returns.as_bytes()]), expected, "{:?} {} with CRLF", sample.format, sample.name);
    }
}

/// From where on the message is complete.
fn last_word(sample: &Sample) -> usize {
    let whole = sample.stream.len();
    // A chat is over with its reason; the mark behind it is not sent by all servers, nor is the usage.
    let reason = sample.stream.find("\"finish_reason\":\"");
    let end = reason.and_then(|reason| Some(reason + sample.stream[reason..].find("\n\n")? + 2));
    end.filter(|_| sample.format == WireFormat::OpenaiChat).unwrap_or(whole)
}

#[test]
fn a_chat_is_whole_with_its_reason_to_stop() {
    for sample in streams::all().into_iter().filter(|sample| sample.format == WireFormat::OpenaiChat) {
        let stream = &sample.stream[..last_word(&sample)];
        let (answer, deltas) = read(Reader::of_stream(decoder_of(sample.format)), &[stream.as_bytes()]);
        let answer = answer.map(|answer| (answer.message, answer.stop));
        let expected = (sample.answer().message, sample.stop);
        assert_eq!((answer, deltas), (Ok(expected), sample.deltas), "{}", sample.name);
    }
}

#[test]
fn a_stream_that_breaks_off_anywhere_is_no_answer() {
    for sample in streams::all() {
        let bytes = sample.stream.as_bytes();
        for place in 0..last_word(&sample) {
            let (answer, _) = read(Reader::of_stream(decoder_of(sample.format)), &[&bytes[..place]]);
            let broke_off = matches!(answer, Err(Trouble::Unreadable(_)));
            assert!(broke_off, "{:?} {} at {place}: {answer:?}", sample.format, sample.name);
        }
    }
}

#[test]
fn an_event_without_json_spoils_the_answer() {
    for sample in streams::all() {
        let stream = format!("data: {{\"half\n\n{}", sample.stream);
        let (answer, _) = read(Reader::of_stream(decoder_of(sample.format)), &[stream.as_bytes()]);
        assert!(matches!(answer, Err(Trouble::Unreadable(_))), "{:?} {}", sample.format, sample.name);
    }
}

#[test]
fn unknown_events_change_nothing() {
    let noise = concat!(
        ": keep-alive\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "data: {\"type\": \"response.new_thing\", \"delta\": \"x\", \"index\": 0}\n\n",
        "data: {\"type\": \"content_block_delta\", \"index\": 99, \"delta\": {\"type\": \"text_delta\", \"text\": \"x\"}}\n\n",
        "data: []\n\ndata: 7\n\ndata: null\n\n",
    );
    for sample in streams::all() {
        let events: Vec<&str> = sample.stream.split_inclusive("\n\n").collect();
        let stream: String = events.iter().map(|event| format!("{noise}{event}")).collect();
        let read = read(Reader::of_stream(decoder_of(sample.format)), &[stream.as_bytes()]);
        assert_eq!(read, (Ok(sample.answer()), sample.deltas), "{:?} {}", sample.format, sample.name);
    }
}

fn any_format() -> impl Strategy<Value = WireFormat> {
    prop::sample::select(WireFormat::ALL.to_vec())
}

proptest! {
    #[test]
    fn random_bytes_are_no_answer(
        format in any_format(),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..10),
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        prop_assert!(read(Reader::of_stream(decoder_of(format)), &pieces).0.is_err());
        prop_assert!(read(Reader::of_whole(decoder_of(format)), &pieces).0.is_err());
    }

    #[test]
    fn streams_of_one_format_never_panic_another_even_when_shuffled(
        format in any_format(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        broken in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let samples = streams::all();
        let events: Vec<&str> = samples.iter().flat_map(|sample| sample.stream.split_inclusive("\n\n")).collect();
        let mut stream: Vec<u8> = picks.iter().flat_map(|pick| pick.get(&events).bytes()).collect();
        if !stream.is_empty() {
            let place = broken.index(stream.len());
            stream[place] = byte;
        }
        let _ = read(Reader::of_stream(decoder_of(format)), &[&stream]);
    }
}
