//! Damages seeds: cut, flipped, spliced, reordered, repeated, dropped, scribbled over.

use crate::dice::Dice;
use crate::frames::HEADER;

/// No input is made longer than this.
const LONGEST: usize = 256 * 1024;
/// One case in so many is made of bytes without any sense.
const SENSELESS: usize = 24;

/// Words that readers of text stumble over.
const AWKWARD: [&str; 16] = [
    "null",
    "-1",
    "18446744073709551616",
    "1e999",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\u{202e}",
    "true",
    "0",
    "\"success\"",
    "\"completed\"",
    "\"end_turn\"",
];

/// The input of one case.
pub(crate) fn input(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    if dice.below(SENSELESS) == 0 {
        return (0..dice.below(2_000)).map(|_| dice.byte()).collect();
    }
    let mut data = dice.one_of(seeds).cloned().unwrap_or_default();
    for place in 0..HEADER.min(data.len()) {
        if dice.below(2) == 0 {
            data[place] = dice.byte();
        }
    }
    for _ in 0..=dice.below(5) {
        data = damaged(data, seeds, dice);
        data.truncate(LONGEST);
    }
    data
}

fn damaged(mut data: Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    match dice.below(12) {
        0 => {
            data.truncate(dice.below(data.len() + 1));
            data
        }
        1 => {
            for _ in 0..=dice.below(8) {
                let at = dice.below(data.len());
                let bit = 1 << dice.below(8);
                data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
            }
            data
        }
        2 => {
            let (at, scribble) = (dice.below(data.len()), dice.byte());
            data.iter_mut().skip(at).take(dice.below(4) + 1).for_each(|byte| *byte = scribble);
            data
        }
        3 => splice(&data, seeds, dice),
        4 => with_lines(data, dice, |lines, dice| {
            let (from, to) = (dice.below(lines.len()), dice.below(lines.len()));
            lines.swap(from, to);
        }),
        5 => with_lines(data, dice, |lines, dice| {
            let (from, to) = (dice.below(lines.len()), dice.below(lines.len()));
            for _ in 0..=dice.below(20) {
                let again = lines[from].clone();
                lines.insert(to, again);
            }
        }),
        6 => with_lines(data, dice, |lines, dice| {
            let at = dice.below(lines.len());
            lines.remove(at);
        }),
        // The end of a conversation shows how it ended.
        7 => with_lines(data, dice, |lines, dice| {
            lines.truncate(lines.len() - 1 - dice.below(lines.len() - 1).min(3))
        }),
        8 => with_lines(data, dice, |lines, dice| {
            let at = dice.below(lines.len());
            let senseless = (0..dice.below(200)).map(|_| dice.byte()).collect();
            lines.insert(at, senseless);
        }),
        9 => with_lines(data, dice, |lines, dice| {
            for at in (1..lines.len()).rev() {
                lines.swap(at, dice.below(at + 1));
            }
        }),
        10 => awkward_word(data, dice),
        _ => repeat_a_piece(data, dice),
    }
}

/// The beginning of one and the end of another.
fn splice(data: &[u8], seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let other: &[u8] = dice.one_of(seeds).map_or(&[], Vec::as_slice);
    let (head, tail) = (dice.below(data.len() + 1), dice.below(other.len() + 1));
    let mut spliced = data.get(..head).unwrap_or_default().to_vec();
    spliced.extend_from_slice(other.get(tail..).unwrap_or_default());
    spliced
}

/// Puts a word where another one was.
fn awkward_word(mut data: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let word = dice.one_of(&AWKWARD).copied().unwrap_or_default();
    let start = dice.below(data.len());
    let ends = |byte: &u8| b",:}]\n".contains(byte);
    let Some(from) = data.iter().skip(start).position(ends).map(|found| start + found + 1) else {
        return data;
    };
    let to = data.iter().skip(from).position(ends).map_or(data.len(), |found| from + found);
    data.splice(from..to, word.bytes());
    data
}

/// Repeats some bytes, so that things nest, pile up or grow long.
fn repeat_a_piece(mut data: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let from = dice.below(data.len());
    let length = [1, 1, 2, 5, 40][dice.below(5)].min(data.len() - from);
    let times = [2, 10, 200, 3_000][dice.below(4)];
    let piece = data[from..from + length].to_vec();
    let many = piece.repeat(times);
    data.splice(from..from, many);
    data
}

fn with_lines(data: Vec<u8>, dice: &mut Dice, change: impl FnOnce(&mut Vec<Vec<u8>>, &mut Dice)) -> Vec<u8> {
    let (header, rest) = data.split_at(data.len().min(HEADER));
    let mut lines: Vec<Vec<u8>> = rest.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines, dice);
    let mut changed = header.to_vec();
    changed.extend(lines.join(&b'\n'));
    changed
}
