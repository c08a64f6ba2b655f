//! Files of packaging for Kubernetes, checked by validators of the formats, and against the program that they start.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::process::run;
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(120);
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes");
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/linters/venv/bin");

/// Objects of a manifest.
fn objects(file: &str) -> Vec<Value> {
    let program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let mut command = Command::new(format!("{PROGRAMS}/python"));
    command.args(["-c", program, &format!("{MANIFESTS}/{file}")]);
    let list = run(command, LIMIT).expect_code(0).document();
    list.as_array().expect("a list").clone()
}

fn text<'a>(of: &'a Value, pointer: &str) -> &'a str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} of {of:#}"))
}

fn array<'a>(of: &'a Value, pointer: &str) -> &'a [Value] {
    of.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("{pointer} of {of:#}"))
}

/// Names of all manifests.
fn files() -> BTreeSet<String> {
    let entries = std::fs::read_dir(MANIFESTS).expect("a directory").flatten();
    entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect()
}

#[test]
fn kubernetes_accepts_the_manifests() {
    let mut listed: BTreeSet<String> = BTreeSet::from(["kustomization.yaml".to_owned()]);
    let kustomization = objects("kustomization.yaml").remove(0);
    listed.extend(array(&kustomization, "/resources").iter().filter_map(Value::as_str).map(str::to_owned));
    assert_eq!(files(), listed, "kustomization.yaml lists every file");
    let mut command = Command::new(format!("{PROGRAMS}/kubernetes-validate"));
    command.args(["--strict", "-k", "1.32"]).current_dir(MANIFESTS);
    command.args(files().iter().filter(|file| !["kustomization.yaml", "podmonitor.yaml"].contains(&file.as_str())));
    let accepted = run(command, LIMIT).expect_code(0);
    assert_eq!(accepted.stdout.matches(" passed ").count(), 7, "{accepted:#?}");
    // Its schema is not Kubernetes' own.
    let scratch = Scratch::new();
    let monitor = scratch.file("podmonitor.json", objects("podmonitor.yaml")[0].to_string());
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deployment/podmonitor.schema.json");
    let program =
        "import json, sys, jsonschema; jsonschema.validate(*[json.load(open(name)) for name in sys.argv[1:]])";
    let mut command = Command::new(format!("{PROGRAMS}/python"));
    command.args(["-c", program, &monitor, schema]);
    run(command, LIMIT).expect_code(0);
}

#[test]
fn containers_have_no_privilege_and_start_what_exists() {
    for (file, has_node_network) in [("hosts.yaml", true), ("pods.yaml", false)] {
        let set = objects(file).remove(0);
        let pod = &set["spec"]["template"]["spec"];
        assert_eq!(pod.get("hostNetwork").is_some(), has_node_network, "{file}");
        assert_eq!(pod["automountServiceAccountToken"], false, "{file}");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{file}");
        assert_eq!(text(pod, "/securityContext/seccompProfile/type"), "RuntimeDefault", "{file}");
        for container in array(pod, "/containers") {
            let context = &container["securityContext"];
            assert_eq!(context["readOnlyRootFilesystem"], true, "{file}");
            assert_eq!(context["allowPrivilegeEscalation"], false, "{file}");
            assert_eq!(context["capabilities"], serde_json::json!({ "drop": ["ALL"] }), "{file}");
            assert!(container["resources"]["limits"]["memory"].is_string(), "{file}");
            // The help comes after all arguments were understood.
            let mut command = linerate();
            command.args(array(container, "/args").iter().filter_map(Value::as_str)).arg("--help");
            run(command, LIMIT).expect_code(0);
        }
    }
}

/// Selectors find pods by their labels, and ports by their names and numbers.
#[test]
fn selectors_find_pods_and_ports() {
    let pods: Vec<Value> = ["hosts.yaml", "pods.yaml"].iter().map(|file| objects(file).remove(0)).collect();
    let found = |labels: &Value| {
        let labels = labels.as_object().expect("labels");
        let has_all = |set: &&Value| {
            labels.iter().all(|(key, value)| set["spec"]["template"]["metadata"]["labels"][key] == *value)
        };
        let found: Vec<&Value> = pods.iter().filter(has_all).collect();
        assert_eq!(found.len(), 1, "{labels:?}");
        let containers = array(found[0], "/spec/template/spec/containers");
        containers.iter().filter_map(|container| container["ports"].as_array()).flatten().cloned()
    };
    let ports = |labels: &Value| -> BTreeSet<(String, u64)> {
        let port =
            |port: &Value| (text(port, "/protocol").to_owned(), port["containerPort"].as_u64().expect("a number"));
        found(labels).map(|found| port(&found)).collect()
    };
    for service in objects("services.yaml") {
        assert_eq!(text(&service, "/spec/clusterIP"), "None");
        let served: BTreeSet<(String, u64)> = array(&service, "/spec/ports")
            .iter()
            .map(|port| (text(port, "/protocol").to_owned(), port["port"].as_u64().expect("a number")))
            .collect();
        assert!(served.is_subset(&ports(&service["spec"]["selector"])), "{service:#}");
    }
    let policy = objects("networkpolicy.yaml").remove(0);
    let allowed: BTreeSet<(String, u64)> = array(&policy, "/spec/ingress")
        .iter()
        .flat_map(|rule| array(rule, "/ports"))
        .map(|port| (text(port, "/protocol").to_owned(), port["port"].as_u64().expect("a number")))
        .collect();
    assert_eq!(allowed, ports(&policy["spec"]["podSelector"]["matchLabels"]));
    let monitor = objects("podmonitor.yaml").remove(0);
    let name = text(&monitor, "/spec/podMetricsEndpoints/0/port").to_owned();
    assert!(found(&monitor["spec"]["selector"]["matchLabels"]).any(|port| port["name"] == *name));
}

#[test]
fn the_description_has_a_timetable() {
    let scratch = Scratch::new();
    let map = objects("fleet.yaml").remove(0);
    let file = scratch.file("fleet.json", text(&map, "/data/fleet.json"));
    let mut command = linerate();
    command.args(["fleet", "plan", &file, "--json"]);
    let plan = run(command, LIMIT).expect_code(0).document();
    assert_eq!(array(&plan, "/timetable/sessions").len(), 3, "a session per pair: {plan:#}");
}
