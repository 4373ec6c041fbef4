//! The list of rejected rows destroys nothing: no file of the run, and no older list if the run has no report.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{HEADER, json_of, program, run, temp, temp_file};
use crate::problems::{lines, path, problems};

const BAD_ROW: &str = "2013,1,1,517,515,2,830,11,UA,1545,NA,EWR,IAH,227,1400,2013-01-01T10:00:00Z";

/// An empty folder of one test.
fn folder(name: &str) -> PathBuf {
    let folder = temp(&format!("rejected-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("the folder can be written");
    path
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("it is there")
}

fn refusal(list: &Path, whose: &str) -> String {
    format!("error: --rejected {}: is the file of {whose}, and would be overwritten", path(list))
}

#[test]
fn a_list_that_cannot_be_written_is_named() {
    let folder = folder("folder");
    let lines = problems(&["--rejected", path(&folder)]);
    assert_eq!(lines.len(), 1);
    let start = format!("error: --rejected {}: cannot be written: ", path(&folder));
    assert!(lines[0].starts_with(&start), "{lines:?}");
    for nowhere in ["nowhere/list.csv", "nowhere/.."] {
        let lines = problems(&["--rejected", path(&folder.join(nowhere))]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(&format!("{nowhere}: cannot be written: ")), "{lines:?}");
    }
    assert!(names_in(&folder).is_empty());
}

#[test]
fn standard_output_is_no_place_for_the_list() {
    let lines = problems(&["--json", "--rejected", "-"]);
    assert_eq!(lines, ["error: --rejected -: standard output is for the report, name a file"]);
}

#[test]
fn the_files_of_input_and_configuration_are_never_overwritten() {
    let folder = folder("named");
    let table = format!("{HEADER}\n{BAD_ROW}\n");
    let input = file(&folder, "input.csv", &table);
    let config = file(&folder, "config.toml", "[wow.dispatch]\nworkers = 1\n");
    for (flag, kept) in [("--input", &input), ("--config", &config)] {
        let before = read(kept);
        assert_eq!(problems(&[flag, path(kept), "--rejected", path(kept)]), [refusal(kept, flag)]);
        let detour = folder.join(".").join(kept.file_name().expect("a name"));
        assert_eq!(problems(&[flag, path(kept), "--rejected", path(&detour)]), [refusal(&detour, flag)]);
        assert_eq!(read(kept), before);
    }
    assert_eq!(names_in(&folder), ["config.toml", "input.csv"]);
}

#[cfg(unix)]
#[test]
fn links_and_redirections_are_seen_through() {
    let folder = folder("links");
    let table = format!("{HEADER}\n{BAD_ROW}\n");
    let input = file(&folder, "input.csv", &table);
    let config = file(&folder, "config.toml", "[wow.dispatch]\nworkers = 1\n");
    for (flag, kept) in [("--input", &input), ("--config", &config)] {
        let before = read(kept);
        let name = kept.file_name().expect("a name").to_string_lossy();
        let (hard, soft) = (folder.join(format!("hard-{name}")), folder.join(format!("soft-{name}")));
        fs::hard_link(kept, &hard).expect("a hard link");
        std::os::unix::fs::symlink(kept, &soft).expect("a symbolic link");
        for link in [&hard, &soft] {
            assert_eq!(problems(&[flag, path(kept), "--rejected", path(link)]), [refusal(link, flag)]);
            assert_eq!(problems(&[flag, path(link), "--rejected", path(kept)]), [refusal(kept, flag)]);
        }
        assert_eq!(read(kept), before);
    }
    let mut redirected = program();
    redirected.stdin(fs::File::open(&input).expect("it is there"));
    redirected.args(["--input", "-", "--rejected", path(&input)]);
    let output = crate::common::finish(redirected.spawn().expect("the program starts"));
    assert_eq!(lines(&output), [refusal(&input, "--input")]);
    assert_eq!(read(&input), table);

    let report = folder.join("report.json");
    let mut redirected = program();
    redirected.stdout(fs::File::create(&report).expect("a file"));
    redirected.args(["--json", "--input", path(&input), "--rejected", path(&report)]);
    let output = crate::common::finish(redirected.spawn().expect("the program starts"));
    assert_eq!(lines(&output), [refusal(&report, "standard output")]);
}

#[test]
fn a_run_without_a_report_leaves_an_older_list_as_it_was() {
    let folder = folder("kept");
    let list = file(&folder, "list.csv", "an older list\n");
    let whole = crate::common::gzip(format!("{HEADER}\n{}", format!("{BAD_ROW}\n").repeat(5_000)));
    let cut = temp_file("rejected-cut.csv.gz", &whole[..whole.len() - 4]);
    let lines = problems(&["--input", path(&cut), "--rejected", path(&list)]);
    assert!(lines[0].ends_with("the gzip data is truncated"), "{lines:?}");
    assert_eq!(read(&list), "an older list\n");
    let new = folder.join("new.csv");
    assert_eq!(problems(&["--input", path(&cut), "--rejected", path(&new)]).len(), 1);
    assert_eq!(names_in(&folder), ["list.csv"], "nothing half made is left");
}

#[test]
fn a_run_with_a_report_replaces_an_older_list() {
    let folder = folder("replaced");
    let list = file(&folder, "list.csv", &"an older and longer list\n".repeat(100));
    let input = temp_file("rejected-one.csv", format!("{HEADER}\n{BAD_ROW}\n"));
    json_of(&run(&["--json", "--input", path(&input), "--rejected", path(&list)]));
    assert_eq!(read(&list).lines().count(), 1, "{}", read(&list));
    assert!(read(&list).starts_with("2,"), "{}", read(&list));
    assert_eq!(names_in(&folder), ["list.csv"]);
}

#[cfg(unix)]
#[test]
fn what_is_replaced_keeps_its_link_and_its_permissions_and_a_device_stays_one() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let folder = folder("forms");
    let list = file(&folder, "list.csv", "an older list\n");
    fs::set_permissions(&list, fs::Permissions::from_mode(0o600)).expect("permissions");
    let link = folder.join("link.csv");
    std::os::unix::fs::symlink(&list, &link).expect("a symbolic link");
    let input = temp_file("rejected-forms.csv", format!("{HEADER}\n{BAD_ROW}\n"));
    json_of(&run(&["--json", "--input", path(&input), "--rejected", path(&link)]));
    assert!(link.is_symlink());
    assert!(read(&list).starts_with("2,"), "{}", read(&list));
    assert_eq!(list.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);

    json_of(&run(&["--json", "--input", path(&input), "--rejected", "/dev/null"]));
    let device = fs::metadata("/dev/null").expect("it is there").file_type();
    assert!(device.is_char_device());
    let fresh = folder.join("nothing.csv");
    let dangling = folder.join("dangling.csv");
    std::os::unix::fs::symlink(&fresh, &dangling).expect("a symbolic link");
    assert_eq!(problems(&["--rejected", path(&dangling)]).len(), 1);
}
