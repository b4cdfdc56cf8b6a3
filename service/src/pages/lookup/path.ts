/** Path of the page that looks up many items at once. */
export const bulkPath = '/bulk'
