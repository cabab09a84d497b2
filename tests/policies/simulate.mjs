// Answers requests on standard input, a line of JSON each, with what @cloud-copilot/iam-simulate
// decides: the other side of compare.py, which starts it with the folder that npm installed into.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const { runSimulation, anonymousPrincipal } = createRequire(process.argv[2] + '/x.js')('@cloud-copilot/iam-simulate')

const named = (policies) => policies.map((policy, number) => ({ name: `p${number}`, policy }))

async function answer(one) {
  const resource = one.key === undefined ? `arn:aws:s3:::${one.bucket}` : `arn:aws:s3:::${one.bucket}/${one.key}`
  const simulation = {
    request: {
      principal: one.kind === 'anonymous' ? anonymousPrincipal : one.arn,
      action: one.action,
      resource: { resource, accountId: one.owner },
      contextVariables: one.context,
    },
    identityPolicies: named(one.identity),
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    resourcePolicy: one.resource[0],
    ...(one.boundary.length > 0 && { permissionBoundaryPolicies: named(one.boundary) }),
    ...(one.session && { sessionPolicy: one.session[0] }),
  }
  const result = await runSimulation(simulation, {})
  if (result.resultType === 'error') return { error: JSON.stringify(result.errors) }
  const ignored = result.result.ignoredContextKeys
  if (ignored && ignored.length > 0) return { error: `ignored ${ignored}` }
  return { verdict: { Allowed: 'allow', ExplicitlyDenied: 'deny', ImplicitlyDenied: 'no grant' }[result.overallResult] }
}

for await (const line of createInterface({ input: process.stdin })) {
  let result
  try {
    result = await answer(JSON.parse(line))
  } catch (error) {
    result = { error: String(error) }
  }
  process.stdout.write(JSON.stringify(result) + '\n')
}
