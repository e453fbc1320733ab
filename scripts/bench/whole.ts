/** Whether an HTTP/1.1 response is complete: by its length, or by its last chunk. */
export function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const head = text.slice(0, end).toLowerCase();
  const size = /content-length: *(\d+)/.exec(head)?.[1];
  if (size === undefined) return text.endsWith("0\r\n\r\n");
  return text.length - end - 4 >= Number(size);
}
