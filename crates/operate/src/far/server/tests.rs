use super::*;

#[test]
fn the_last_word_of_a_command_is_its_program() {
    assert_eq!(with_program("sudo -n linerate", "/proc/7/exe"), "sudo -n /proc/7/exe");
    assert_eq!(with_program("linerate", "/proc/7/exe"), "/proc/7/exe");
}

#[test]
fn an_unreachable_server_has_a_remedy() {
    let port = Port::new(40123).expect("not 0");
    let direct = unreachable("connecting to 192.0.2.7: timed out", port, &ResolvedHost::default());
    assert!(direct.contains("port 40123") && direct.contains("timed out") && direct.contains("-p PORT"), "{direct}");
    let proxy = ResolvedHost { name: None, proxy: Some("gate".to_owned()) };
    assert!(unreachable("timed out", port, &proxy).contains("ssh connects through gate"));
}

#[test]
fn a_namespace_is_no_host_over_ssh() {
    let address = FarAddress::Namespace("far".to_owned());
    let request =
        FarServerRequest { address: &address, program: "linerate", push: None, key: "k", port: None, family: None };
    let interrupts = InterruptSignals::install().expect("signals");
    let error = FarServer::start(&request, interrupts, &mut |_| {}).expect_err("no ssh");
    assert!(error.starts_with("netns:far: only a host over ssh"), "{error}");
}
