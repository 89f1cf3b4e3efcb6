//! A long queue beside a short one: how long a free slot stays free, and how long reading takes. Both take turns, so that a busy
//! moment of the machine meets both.

use towline_testkit::figures::{Figure, median, percentile, shown};

use crate::queue::{Queue, Start};
use crate::server::Client;

const STARTING: &str = "A free slot, with 100,000 goals in the queue";
const READING: &str = "HTTP beside 100,000 goals";
/// How many goals are in the queues, at least.
const SIZES: [usize; 2] = [10, 100_000];
/// What something may take in the long queue, times what it takes in the short one.
const RATIO: f64 = 2.0;
/// How often each queue has its turn, and how many goals start then.
const ROUNDS: usize = 15;
const STARTS: usize = 10;
/// How often each request is made.
const REQUESTS: usize = 200;
/// How long a start may take, and each reply, in milliseconds.
const START: f64 = 20.0;
const PAGE: f64 = 20.0;
const ID: f64 = 2.0;

/// A part of a start, in milliseconds.
type Part = fn(&Start) -> f64;

pub(crate) fn measure() {
    let mut queues = SIZES.map(Queue::new);
    read(&queues);
    start(&mut queues);
    queues.into_iter().for_each(Queue::close);
}

fn start(queues: &mut [Queue; 2]) {
    for _ in 0..ROUNDS {
        queues.iter_mut().for_each(|queue| queue.run(STARTS));
    }
    let [few, many] = [&queues[0], &queues[1]].map(Queue::starts);
    let of = |starts: &[Start], part: Part| median(starts.iter().map(part));
    print_ratio(STARTING, "until the agent of the next goal runs", [of(&few, started), of(&many, started)]);
    Figure::new(STARTING, "the same, p99", percentile(many.iter().map(started), 0.99), "ms")
        .below(START)
        .beside(format!("{} goals", shown(many.len() as f64)))
        .print();
    let parts: [(&str, Part); 3] = [
        ("— the next goal is chosen", |start| start.dispatched),
        ("— its workspace", |start| start.prepared - start.dispatched),
        ("— the supervisor and the agent start", |start| start.started - start.prepared),
    ];
    for (what, part) in parts {
        let beside = format!("{}: {} ms", SIZES[0], shown(of(&few, part)));
        Figure::new(STARTING, what, of(&many, part), "ms").beside(beside).print();
    }
}

fn started(start: &Start) -> f64 {
    start.started
}

fn read(queues: &[Queue; 2]) {
    let ids = [0, 1].map(|place| queues[place].goal(SIZES[place] / 2).id.short());
    let mut clients = [0, 1].map(|place| queues[place].server.client());
    // As many rows of both, to be compared; and the page as it is without asking for a length.
    let rows = times(&mut clients, |_| format!("/goals?limit={}", SIZES[0]));
    let page = times(&mut clients, |_| "/goals".to_owned());
    let id = times(&mut clients, |place| format!("/goals/{}", ids[place]));
    Figure::new(READING, "the first page of goals", page[1], "ms").below(PAGE).print();
    print_ratio(READING, "the first ten goals", rows);
    Figure::new(READING, "a goal by the beginning of its id", id[1], "ms").below(ID).print();
    print_ratio(READING, "a goal by the beginning of its id", id);
}

/// How long a request usually takes with each client, in milliseconds.
fn times(clients: &mut [Client; 2], path: impl Fn(usize) -> String) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        for (place, client) in clients.iter_mut().enumerate() {
            times[place].push(client.get(&path(place)).0);
        }
    }
    times.map(median)
}

fn print_ratio(section: &'static str, what: &str, [few, many]: [f64; 2]) {
    let [short, long] = SIZES.map(|goals| shown(goals as f64));
    Figure::new(section, format!("{what}, times the same beside {short}"), many / few, "")
        .below(RATIO)
        .gates()
        .beside(format!("{short}: {} ms; {long}: {} ms", shown(few), shown(many)))
        .print();
}
