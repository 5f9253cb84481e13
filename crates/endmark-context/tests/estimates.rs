//! Compares estimates without a vocabulary with exact counts. The rates were measured on other texts.

use std::fmt::Write as _;

use endmark_context::count::{Family, TextTally, estimate_request, request};

const ENGLISH: &str = "The harbour was quiet when the first boats came in. Nobody on the quay had expected them before \
    noon, and the crane was still being repaired. Still, the pilots found room for all six, and by the evening most of \
    the cargo had been unloaded. What remained was a matter of paperwork: two containers had no seal, and one of them \
    was listed under the name of a company that, as far as anyone could tell, did not exist. The inspector wrote a short \
    report, asked for a copy of the manifest, and went home.";
const GERMAN: &str = "Der Hafen war still, als die ersten Boote einliefen. Niemand am Kai hatte sie vor Mittag erwartet, \
    und der Kran wurde noch repariert. Trotzdem fanden die Lotsen Platz für alle sechs, und am Abend war der größte Teil \
    der Ladung gelöscht. Übrig blieb der Papierkram: Zwei Container hatten kein Siegel, und einer davon war auf eine \
    Firma eingetragen, die es nicht gab.";
const RUSSIAN: &str = "В порту было тихо, когда пришли первые лодки. Никто на причале не ждал их раньше полудня, а кран всё \
    ещё чинили. Тем не менее лоцманы нашли место для всех шести, и к вечеру большая часть груза была выгружена. Осталось \
    только оформить документы: на двух контейнерах не было пломбы, а один из них числился за компанией, которой, \
    насколько удалось выяснить, не существует.";
const HINDI: &str = "जब पहली नावें आईं तब बंदरगाह शांत था। घाट पर किसी ने दोपहर से पहले उनकी उम्मीद नहीं की थी, और क्रेन की \
    मरम्मत अभी चल रही थी। फिर भी सभी छह नावों के लिए जगह मिल गई और शाम तक अधिकांश माल उतार लिया गया। बाकी केवल कागजी काम \
    था: दो कंटेनरों पर कोई मुहर नहीं थी, और उनमें से एक ऐसी कंपनी के नाम पर दर्ज था जो मौजूद ही नहीं थी।";
const CHINESE: &str = "第一批船进港的时候，港口很安静。码头上没有人料到它们会在中午之前到达，起重机还在维修。尽管如此，\
    引航员还是为六条船都找到了位置，到了晚上，大部分货物已经卸完。剩下的只是文件工作：两个集装箱没有封条，其中一个登记在\
    一家据大家所知并不存在的公司名下。检查员写了一份简短的报告，要了一份货物清单的副本，然后回家了。";
const JAPANESE: &str = "最初の船が入ってきたとき、港は静かだった。昼前に来るとは岸壁の誰も思っておらず、クレーンはまだ修理中\
    だった。それでも水先人は六隻すべての場所を見つけ、夕方までに積み荷の大半が降ろされた。残ったのは書類の仕事だけで、二つの\
    コンテナには封印がなかった。";
const RUST: &str = r"
/// Returns the berths that are free, the longest first.
pub fn free_berths(&self, at: Moment) -> Vec<&Berth> {
    let mut free: Vec<&Berth> = self.berths.iter().filter(|berth| berth.is_free(at)).collect();
    free.sort_by_key(|berth| std::cmp::Reverse(berth.length_m));
    free
}

fn assign(&mut self, ship: Ship) -> Result<usize, HarbourError> {
    let needed = ship.length_m + MARGIN_M;
    for (number, berth) in self.berths.iter_mut().enumerate() {
        if berth.ship.is_none() && berth.length_m >= needed {
            berth.ship = Some(ship);
            return Ok(number);
        }
    }
    Err(HarbourError::Full { name: ship.name, length_m: ship.length_m })
}
";
const PYTHON: &str = r#"
class Harbour:
    """Berths and the ships in them."""

    def __init__(self, berths):
        self.berths = {berth.number: berth for berth in berths}
        self._waiting = []

    def assign(self, ship, *, margin=5.0):
        for number, berth in sorted(self.berths.items()):
            if berth.ship is None and berth.length >= ship.length + margin:
                berth.ship = ship
                return number
        self._waiting.append(ship)
        raise HarbourFullError(f"no berth is long enough for {ship.name!r} ({ship.length:.1f} m)")
"#;

fn json() -> String {
    let mut rows = String::from("[");
    for number in 0_u64..40 {
        let (id, price) = (10_000 + number * 37, number * 7_919 % 9_973);
        let (cents, minute) = (number * 13 % 100, number % 60);
        let (month, day, active) = (1 + number % 12, 1 + number % 28, number.is_multiple_of(3));
        let _ = write!(
            rows,
            r#"{{"id":{id},"name":"crane-{number}","price":{price}.{cents:02},"active":{active},"created_at":"2026-{month:02}-{day:02}T10:{minute:02}:00Z","tags":["north","leased"],"owner":null}},"#,
        );
    }
    rows.pop();
    rows + "]"
}

fn random_numbers() -> String {
    let value =
        |number: u64| number * 2_654_435_761 % [9, 97, 983, 9_973, 99_991, 999_983][(number % 6) as usize];
    let line =
        |number: u64| format!("{}, {}.{:03}\n", value(number), value(number + 4), number * 271 % 1_000);
    (1..400).map(line).collect()
}

/// Escapes all characters outside ASCII, as some clients do in their requests.
fn escape_non_ascii(text: &str) -> String {
    let mut body = String::from(r#"{"model":"m","messages":[{"role":"user","content":""#);
    for unit in text.encode_utf16() {
        match u8::try_from(unit).ok().filter(u8::is_ascii) {
            Some(byte) => body.push(char::from(byte)),
            None => {
                let _ = write!(body, "\\u{unit:04x}");
            }
        }
    }
    body + r#""}]}"#
}

/// One model for each vocabulary.
const MODELS: [&str; 4] = ["gpt-5", "gpt-4", "claude-sonnet-4", "claude-opus-4-8"];
/// The maximum error is larger for German, because vocabularies made for English split its compound words.
const MAX_ERROR_PERCENT: [(&str, i64); 2] = [("German", 33), ("", 20)];

fn error_percent(estimated: u64, counted: u64) -> i64 {
    let (estimated, counted) = (estimated.cast_signed(), counted.cast_signed());
    (estimated - counted) * 100 / counted
}

/// With `--nocapture`, the test prints a table, including an estimate of one token per four bytes.
#[test]
fn estimates_are_within_a_fifth_of_the_vocabulary_counts() {
    let (json, digits) = (json(), random_numbers());
    let texts = [
        ("English", ENGLISH),
        ("German", GERMAN),
        ("Russian", RUSSIAN),
        ("Hindi", HINDI),
        ("Chinese", CHINESE),
        ("Japanese", JAPANESE),
        ("Rust", RUST),
        ("Python", PYTHON),
        ("JSON", &json),
        ("digits", &digits),
    ];
    println!("{:<18} bytes/4  {MODELS:?}", "percent off");
    let mut far = Vec::new();
    let mut note = |kind: &str, bytes: usize, counted: [u64; 4], estimated: [u64; 4]| {
        let off: [i64; 4] = std::array::from_fn(|model| error_percent(estimated[model], counted[model]));
        println!("{kind:<18} {:>+7}  {off:>+4?}", error_percent(bytes as u64 / 4, counted[0]));
        let most = MAX_ERROR_PERCENT.iter().find(|(of, _)| kind.starts_with(of)).map_or(0, |(_, most)| *most);
        if off.iter().any(|off| off.abs() > most) {
            far.push((kind.to_owned(), off));
        }
    };
    for (kind, text) in texts {
        let families = MODELS.map(Family::of);
        let tally = TextTally::of(text);
        note(
            kind,
            text.len(),
            families.map(|family| family.tokens(text)),
            families.map(|family| tally.tokens(family)),
        );
        if !text.is_ascii() {
            let body = escape_non_ascii(text);
            let counted = MODELS.map(|model| request(&body, model).unwrap().tokens);
            let estimated = MODELS.map(|model| estimate_request(&body, model).unwrap().text);
            note(&format!("{kind}, escaped"), body.len(), counted, estimated);
        }
    }
    assert_eq!(far, []);
}

/// A stream is estimated while it arrives in pieces of any size.
#[test]
fn a_text_in_pieces_has_the_same_tally_as_the_whole_text() {
    let text = format!("{ENGLISH}{RUSSIAN}{RUST}{CHINESE}{}", random_numbers());
    let whole = TextTally::of(&text);
    let characters: Vec<char> = text.chars().collect();
    for size in [1, 2, 3, 7, 64] {
        let mut tally = TextTally::default();
        characters.chunks(size).for_each(|piece| tally.add(&piece.iter().collect::<String>()));
        assert_eq!(tally, whole, "{size}");
    }
    assert_eq!(whole.bytes(), text.len() as u64);
    assert_eq!(TextTally::default().tokens(Family::Other), 0);
}
