use futures_util::FutureExt;

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    connections_max: 100,
    incomplete_per_address_max: 3,
    read_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(120),
    body_max_bytes: 1024,
    bodies_max_bytes: 4096,
};

const LOCAL: [u8; 4] = [127, 0, 0, 1];

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn open(connections: &Connections, address: [u8; 4], now: u64) -> Arc<Connection> {
    connections.open(address.into(), at(now)).connection.unwrap()
}

/// True only once, if it was.
fn is_cut(connection: &Connection) -> bool {
    connection.cut().now_or_never().is_some()
}

#[test]
fn of_those_that_sent_nothing_complete_the_oldest_of_its_address_goes() {
    let connections = Connections::new(LIMITS);
    let local: Vec<_> = (0..3).map(|second| open(&connections, LOCAL, second)).collect();
    let other = open(&connections, [10, 0, 0, 1], 3);
    assert!(!connections.open(LOCAL.into(), at(4)).refused, "its own slowness is its own");
    assert_eq!(local.iter().map(|one| is_cut(one)).collect::<Vec<_>>(), [true, false, false]);
    assert!(!is_cut(&other));
    assert_eq!(connections.count(), 4);
    connections.close(&local[0]);
    assert_eq!(connections.count(), 4, "it was counted as gone when it was cut");
}

#[test]
fn who_is_cut_before_it_could_speak_was_refused() {
    let connections = Connections::new(LIMITS);
    for _ in 0..3 {
        open(&connections, LOCAL, 0);
    }
    assert!(connections.open(LOCAL.into(), Duration::from_millis(500)).refused);
}

#[test]
fn those_that_sent_a_request_are_not_limited_by_address() {
    let connections = Connections::new(LIMITS);
    for second in 0..50 {
        let room = open(&connections, LOCAL, second);
        connections.work(&room, at(second));
        connections.rest(&room, at(second));
    }
    assert_eq!(connections.count(), 50);
    let slow: Vec<_> = (50..60).map(|second| open(&connections, LOCAL, second)).collect();
    assert_eq!(slow.iter().filter(|one| is_cut(one)).count(), 7);
    assert_eq!(connections.count(), 53);
}

#[test]
fn when_all_are_in_use_the_slow_go_first_and_then_the_longest_idle() {
    let limits = ConnectionLimits { connections_max: 40, ..LIMITS };
    let connections = Connections::new(limits);
    let room = |second| {
        let room = open(&connections, LOCAL, second);
        connections.work(&room, at(second));
        connections.rest(&room, at(second));
        room
    };
    let rooms: Vec<_> = (0..38).map(room).collect();
    // It works at something.
    connections.work(&rooms[0], at(80));
    let slow = open(&connections, [10, 0, 0, 1], 80);
    let begun = &rooms[37];
    begun.receive(|| at(81));
    let _last = open(&connections, [10, 0, 0, 2], 90);
    let opened = connections.open([10, 0, 0, 3].into(), at(100));
    assert!(opened.connection.is_some() && !opened.refused);
    let cut: Vec<_> = rooms.iter().map(|room| is_cut(room)).collect();
    assert!(is_cut(&slow) && cut[37]);
    assert!(!cut[0], "it is being worked for");
    assert!(cut[1] && !cut[36], "the longest idle go first");
    assert_eq!(connections.count(), 40 - EVICTED_AT_ONCE + 1);
}

#[test]
fn when_all_are_worked_for_nobody_is_closed_and_the_next_is_refused() {
    let connections = Connections::new(ConnectionLimits { connections_max: 2, ..LIMITS });
    for second in 0..2 {
        let busy = open(&connections, LOCAL, second);
        connections.work(&busy, at(second));
    }
    let opened = connections.open(LOCAL.into(), at(2));
    assert!(opened.connection.is_none() && opened.refused);
}

#[test]
fn deadlines() {
    let check = |set_up: fn(&Connections, &Connection), last: u64, over: u64| {
        let connections = Connections::new(LIMITS);
        let connection = open(&connections, LOCAL, 0);
        set_up(&connections, &connection);
        assert_eq!(connections.cut_overdue(at(last)), 0);
        assert!(!is_cut(&connection));
        assert_eq!(connections.cut_overdue(at(over)), 1);
        assert!(is_cut(&connection));
        assert_eq!(connections.count(), 0);
    };
    // Nothing comes, or not all of it, however often.
    check(|_, _| {}, 9, 10);
    check(|_, connection| connection.receive(|| at(5)), 9, 10);
    // Idle after an answer, or with the next request in pieces.
    check(
        |all, connection| {
            all.work(connection, at(5));
            all.rest(connection, at(300));
        },
        419,
        420,
    );
    check(
        |all, connection| {
            all.work(connection, at(5));
            all.rest(connection, at(6));
            connection.receive(|| at(20));
            connection.receive(|| at(29));
        },
        29,
        30,
    );
    // Work has a deadline of its own.
    let connections = Connections::new(LIMITS);
    connections.work(&open(&connections, LOCAL, 0), at(0));
    assert_eq!(connections.cut_overdue(at(1_000_000)), 0);
}

#[test]
fn a_connection_is_idle_when_its_last_stream_has_ended() {
    let connections = Connections::new(LIMITS);
    let connection = open(&connections, LOCAL, 0);
    connections.begin_stream(&connection, at(1));
    connections.begin_stream(&connection, at(2));
    connections.end_stream(&connection, false, at(3));
    assert_eq!(connections.cut_overdue(at(1_000)), 0);
    connections.end_stream(&connection, false, at(1_000));
    assert_eq!(connections.cut_overdue(at(1_119)), 0);
    assert_eq!(connections.cut_overdue(at(1_120)), 1);
    assert!(is_cut(&connection));
}

#[test]
fn what_lasts_is_told_from_what_is_worked_on() {
    let connections = Connections::new(LIMITS);
    let connection = open(&connections, LOCAL, 0);
    let told = || (connection.has_lasting(), connection.all_last());
    assert_eq!(told(), (false, true));
    connections.begin_stream(&connection, at(1));
    connections.begin_stream(&connection, at(2));
    assert_eq!(told(), (false, false));
    connection.begin_lasting();
    assert_eq!(told(), (true, false));
    connections.end_stream(&connection, false, at(3));
    assert_eq!(told(), (true, true));
    connections.end_stream(&connection, true, at(4));
    assert_eq!(told(), (false, true));
}

#[test]
fn what_is_kept_of_bodies_is_bounded() {
    let connections = Connections::new(LIMITS);
    let (small, large) = (connections.keep(96), connections.keep(4000));
    assert!(small.is_some() && large.is_some());
    assert!(connections.keep(1).is_none());
    drop(large);
    assert!(connections.keep(4001).is_none());
    assert!(connections.keep(4000).is_some());
}

#[test]
fn addresses_of_one_sender() {
    for (address, expected) in [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
    ] {
        assert_eq!(sender(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn who_takes_nothing_of_an_answer_that_lasts_is_cut() {
    let connections = Connections::new(LIMITS);
    let [reader, deaf] = [0, 0].map(|second| open(&connections, LOCAL, second));
    for connection in [&reader, &deaf] {
        connections.work(connection, at(0));
        connections.stream(connection, at(0));
    }
    let mut now = 0;
    // However long it lasts.
    for _ in 0..100 {
        now += 15;
        connections.stream(&reader, at(now));
        connections.cut_overdue(at(now));
        assert_eq!(is_cut(&deaf), now == STALLED.as_secs(), "{now}");
    }
    assert!(!is_cut(&reader));
    connections.rest(&reader, at(now));
    connections.cut_overdue(at(now + LIMITS.idle_timeout.as_secs()));
    assert!(is_cut(&reader), "between two answers it is as idle as others");
}

#[test]
fn an_answer_that_lasts_is_not_cut_off_for_another_connection() {
    let connections = Connections::new(ConnectionLimits { connections_max: 1, ..LIMITS });
    let reader = open(&connections, LOCAL, 0);
    connections.work(&reader, at(0));
    connections.stream(&reader, at(0));
    assert!(connections.open([10, 0, 0, 1].into(), at(50)).connection.is_none());
    assert!(!is_cut(&reader));
}
