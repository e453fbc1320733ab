/** A payment as Stripe knows it; amounts are in cents. */
export interface StripePayment {
  sessionId: string;
  intent: string;
  projectId: string;
  user: string;
  /** The wallet that it is paid into, through this server's own account; null for a project's. */
  wallet: { personId: string; connectionId: string } | null;
  cents: number;
  /** What Stripe has reported as refunded, by refunds and disputes together. */
  centsBack: number;
  /** What of it was reinstated with a won dispute. */
  centsWon: number;
  /** Whether the service has acknowledged it. */
  booked: boolean;
}
