// Documents against docs/schema, by a validator that is not ours.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";

const folder = new URL("../../docs/schema/", import.meta.url);
const schema = (name) => JSON.parse(readFileSync(new URL(`${name}.schema.json`, folder), "utf8"));

export async function validateDocuments(documents) {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictTuples: false, allErrors: true });
  // Widths of numbers are not checked: JSON has one kind.
  for (const format of ["uint8", "uint16", "uint32", "uint64", "int64", "double"]) ajv.addFormat(format, true);
  const validators = new Map(["run", "throughput", "path", "load", "rfc6349", "rr", "diagnose", "tune", "doctor", "web"].map((name) => [name, ajv.compile(schema(name))]));
  const check = (name, document, whose) => {
    const validate = validators.get(name);
    assert.ok(validate(document), `${whose}: ${ajv.errorsText(validate.errors)}`);
  };
  assert.ok(documents.length > 0);
  for (const [whose, run] of documents) {
    check("run", run, whose);
    check(run.kind, run.result[run.kind], whose);
    // A schema that allows anything would not notice.
    const { host, ...rest } = run;
    assert.ok(!validators.get("run")(rest), `${whose} without ${host} passes`);
  }
}
