/** The alerts of deploy/prometheus: each fires in a test of its rule. None fires in the everyday life of a service. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { alertRules } from '../../../../scripts/docs.ts'
import { read, root } from '../../support/processes/deploy.ts'

type RuleTest = Readonly<{
  name: string
  input_series: readonly { readonly series: string }[]
  alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[]
  promql_expr_test?: readonly { readonly exp_samples: readonly { readonly labels: string }[] }[]
}>

const file = 'deploy/prometheus/alerts.test.yaml'
const { tests } = parse(read(file)) as { readonly tests: readonly RuleTest[] }
const nameOf = /alertname="(\w+)"/

/** The alerts that a test expects to fire at one of its times. */
const firedBy = ({ alert_rule_test: alone = [], promql_expr_test: all = [] }: RuleTest): string[] => [
  ...alone.flatMap(({ alertname, exp_alerts: fired }) => (fired.length > 0 ? [alertname] : [])),
  ...all.flatMap(({ exp_samples: samples }) => samples.map(({ labels }) => nameOf.exec(labels)?.[1] ?? labels)),
]

describe('deploy/prometheus', () => {
  const hasPromtool = spawnSync('promtool', ['--version'], { stdio: 'ignore' }).error === undefined
  const skip = !hasPromtool && 'no promtool: apt-get install prometheus'

  it('fires as its tests say', { skip }, () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', join(root, file)], { encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  })

  it('has a test in which each alert fires', () => {
    const fired = new Set(tests.flatMap(firedBy))
    assert.deepEqual(fired, new Set(alertRules().map(({ alert }) => alert)))
  })

  it('has everyday values of each metric of an alert, at which none fires', () => {
    const everyday = tests.find(({ name }) => name === 'A service in its everyday life')
    assert.ok(everyday !== undefined && (everyday.promql_expr_test?.length ?? 0) > 0)
    assert.deepEqual(firedBy(everyday), [])
    const given = everyday.input_series.map(({ series }) => series.replace(/\{.*/, ''))
    for (const { alert, expr } of alertRules())
      for (const name of expr.match(/\btouchstone_[a-z_]+/g) ?? [])
        assert.ok(given.includes(name), `${name} of ${alert}`)
  })
})
