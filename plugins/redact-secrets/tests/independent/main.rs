//! How many secrets of a set that was made after the rules, and not from them, are found, and what else is taken for one.
//!
//! The forms come from what the makers of credentials publish, the places from configs, shells, logs and code. Each case is an
//! entry of a session, run through the plugin. Every second form, place and harmless text is the other half: what is missed there
//! was not looked at while the rules were first mended. `cargo test -p redact-secrets --test independent -- --nocapture` prints the
//! figures of the page and what is missed.
mod dice;
mod entries;
mod forms;
mod harmless;
mod places;

use dice::Dice;
use entries::{Case, Outcome};
use forms::thrown;

/// How often each form, name and place is thrown.
const ROUNDS: usize = 4;

/// Every second, from the first or from the second.
fn half<T>(all: &[T], held_out: bool) -> impl Iterator<Item = (usize, &T)> {
    all.iter().enumerate().skip(usize::from(held_out)).step_by(2)
}

/// All cases with secrets, by group.
fn secrets(held_out: bool) -> Vec<Case> {
    let (dice, mut cases) = (&mut Dice(20_261_203 + u64::from(held_out)), Vec::new());
    let around: Vec<_> = half(places::AROUND, held_out).map(|(_, place)| *place).collect();
    let named: Vec<_> = half(places::NAMED, held_out).map(|(_, place)| *place).collect();
    for _ in 0..ROUNDS {
        for (_, form) in half(forms::SELF, held_out) {
            let secret = thrown(form, dice);
            cases.push(Case::with("by form", dice.pick(&around), "", &[&secret]));
        }
        for (_, (name, form)) in half(forms::NAMED, held_out) {
            let secret = thrown(form, dice);
            cases.push(Case::with("beside a name", dice.pick(&named), name, &[&secret]));
        }
        for (_, (text, form)) in half(places::WHOLE, held_out) {
            let secret = if *form == "b64pair" { entries::pair(dice) } else { thrown(form, dice) };
            cases.push(Case::with("in files, commands, headers", &thrown(text, dice), "", &[&secret]));
        }
        for (_, (block, between)) in half(places::BLOCKS, held_out) {
            let lines: Vec<_> = (0..6).map(|_| thrown("[B64]", dice)).collect();
            let text = block.replace('¦', "").replace("@@", &lines.join(between));
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            cases.push(Case {
                group: "private keys",
                text,
                secrets: lines.iter().map(|line| (*line).to_owned()).collect(),
            });
        }
    }
    cases
}

fn harmless(held_out: bool) -> Vec<Case> {
    let dice = &mut Dice(7 + u64::from(held_out));
    let rounds = (0..ROUNDS).flat_map(|_| half(harmless::HARMLESS, held_out));
    rounds.map(|(_, text)| Case { group: "harmless", text: thrown(text, dice), secrets: Vec::new() }).collect()
}

/// What was found of a half: by group, in all, and false alarms. As the page says it.
fn measured(held_out: bool) -> Vec<String> {
    let (mut groups, mut alarms) = (Vec::<(&str, usize, usize)>::new(), 0);
    for (at, case) in secrets(held_out).iter().enumerate() {
        let Outcome { gone, others } = entries::run(at, case);
        if !gone || others > 0 {
            println!(
                "{} ({}, {others} others): {:?} {:?}",
                if gone { "more" } else { "missed" },
                case.group,
                case.text,
                case.secrets
            );
        }
        if groups.iter().all(|(name, ..)| *name != case.group) {
            groups.push((case.group, 0, 0));
        }
        let group = groups.iter_mut().find(|(name, ..)| *name == case.group).expect("it is there");
        (group.1, group.2, alarms) = (group.1 + usize::from(gone), group.2 + 1, alarms + others);
    }
    let innocent = harmless(held_out);
    let mut taken = 0;
    for (at, case) in innocent.iter().enumerate() {
        let others = entries::run(at, case).others;
        taken += usize::from(others > 0);
        if others > 0 {
            println!("false alarm: {:?}", case.text);
        }
    }
    let (found, all) = groups.iter().fold((0, 0), |(found, all), (_, hits, of)| (found + hits, all + of));
    let mut lines: Vec<_> = groups.iter().map(|(name, hits, of)| format!("{name}: {hits} of {of}")).collect();
    lines.push(format!("all: {found} of {all}"));
    lines.push(format!("taken for secrets: {taken} of {}, and {alarms} beside secrets", innocent.len()));
    let precision = found as f64 / (found + taken + alarms) as f64;
    lines.push(format!("recall {:.3}, precision {precision:.3}", found as f64 / all as f64));
    lines
}

#[test]
fn the_figures_are_those_of_the_page() {
    let halves = [("one half", measured(false)), ("the other half", measured(true))];
    let figures: Vec<_> = halves.iter().map(|(half, lines)| format!("{half}\n  {}", lines.join("\n  "))).collect();
    let figures = figures.join("\n");
    println!("{figures}");
    assert!(include_str!("../../README.md").contains(&figures), "the page says otherwise than:\n{figures}");
}

#[test]
fn the_same_secret_has_the_same_placeholder_wherever_it_stands() {
    let same = |secret: &str, places: &[&str]| {
        let shown: Vec<_> =
            places.iter().enumerate().map(|(at, place)| entries::shown(at, &place.replace("@@", secret))).collect();
        let placeholder =
            |text: &String| text.split("[redacted ").nth(1).and_then(|rest| rest.split(']').next()).map(str::to_owned);
        let all: Vec<_> = shown.iter().map(placeholder).collect();
        assert!(all[0].is_some() && all.iter().all(|one| *one == all[0]), "{all:?} {shown:?}");
    };
    same(
        "Kr8!vhq2x",
        &["DB_PASSWORD=@@", "postgres://app:@@@db.test/x", "curl -u a:@@ x", "{\"password\":\"@@\"}", "mysql -p@@ x"],
    );
    let key = "q7Wm2Zx9Lp4Tn8RvK3sDq7Wm2Zx9Lp4T";
    same(
        key,
        &[
            "API_KEY=@@",
            "Authorization: Bearer @@",
            "Cookie: a=b; sid=@@; c=d",
            "?access_token=@@&x=1",
            "--token @@",
            "db_password: '@@'",
        ],
    );
    let token = thrown("gl¦pat-[U20]", &mut Dice(3));
    same(
        &token,
        &["see @@", "https://oauth2:@@@git.test/a.git", "GITLAB_TOKEN=@@", "PRIVATE-TOKEN: @@", "password: \"@@\""],
    );
}
