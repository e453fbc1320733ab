/** @jsxImportSource @hono/hono/jsx */
import { fromDecimal } from "../../base/money.ts";
import { unbookedReasons } from "../../base/unbooked_reasons.ts";
import { type MoneyText, type UnbookedPayment } from "../../payments/unbooked.ts";
import { Badge, MoneyCell, Table, TimeCell } from "../../pages/parts.tsx";

const shownMax = 20;
const currencies = new Set(Intl.supportedValuesOf("currency"));

/** The last payments that are not booked; nothing where there are none. */
export function UnbookedPayments({ payments }: { payments: readonly UnbookedPayment[] }) {
  if (payments.length === 0) return null;
  return (
    <section id="unbooked">
      <h2>
        Payments that are not booked <Badge tone="bad">{payments.length}</Badge>
      </h2>
      <p>
        These sessions were reported as paid, but no money was added to a balance. Once the cause is
        removed, have Stripe send the event again, or run <code>farebox stripe reconcile</code>.
      </p>
      <Table
        caption="The last reported first"
        columns={[
          "Session",
          "Reported",
          "User",
          { title: "Paid", number: true },
          { title: "Requested", number: true },
          "Reason",
        ]}
        rows={payments.slice(0, shownMax).map((payment) => [
          <code>{payment.sessionId}</code>,
          <>
            <TimeCell at={payment.lastAt} />
            {payment.count > 1 ? ` (${payment.count} times)` : ""}
          </>,
          payment.user === null ? "–" : <bdi>{payment.user}</bdi>,
          <Money money={payment.paid} />,
          <Money money={payment.requested} />,
          <>
            <code>{payment.reason}</code> {unbookedReasons[payment.reason]}
          </>,
        ])}
        empty=""
      />
    </section>
  );
}

function Money({ money }: { money: MoneyText | null }) {
  if (money === null) return <>–</>;
  const { amount, currency } = money;
  if (!currencies.has(currency.toUpperCase())) return <>{`${amount} ${currency}`}</>;
  return <MoneyCell amount={fromDecimal(amount)} currency={currency} />;
}
