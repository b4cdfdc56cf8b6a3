/** Acts that can need the approval of a second key or operator, as the setting APPROVALS names them. */
export const approvalActs = ['recycle', 'batch-revoke', 'key-deletion'] as const
export type ApprovalAct = (typeof approvalActs)[number]
