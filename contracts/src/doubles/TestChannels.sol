// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

struct ChannelConfig {
    address payer;
    address payerAuthorizer;
    address receiver;
    address receiverAuthorizer;
    address token;
    uint40 withdrawDelay;
    bytes32 salt;
}

interface Token {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external;
}

interface Collector {
    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external;
}

/// Payment channels for a local chain: ABI, domain and rules of x402BatchSettlement as far as the gateway uses them. It has no constructor, so
/// that anvil_setCode places it. The tests of the channels also run against the code of the real one (TEST_CHANNEL_CONTRACTS).
contract TestChannels {
    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        uint128 totalClaimed;
    }

    struct Funds {
        uint128 balance;
        uint128 totalClaimed;
    }

    struct Withdrawal {
        uint128 amount;
        uint40 initiatedAt;
    }

    struct Income {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    string private constant CONFIG =
        "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)";
    string private constant ENTRY = "ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)";
    string private constant VOUCHER = "Voucher(bytes32 channelId,uint128 maxClaimableAmount)";

    mapping(bytes32 channelId => Funds) public channels;
    mapping(bytes32 channelId => Withdrawal) public pendingWithdrawals;
    mapping(address receiver => mapping(address token => Income)) public receivers;

    error InvalidChannel();
    error InvalidSignature();
    error ClaimExceedsCeiling();
    error ClaimExceedsBalance();
    error WithdrawalAlreadyPending();
    error WithdrawalNotPending();
    error WithdrawDelayNotElapsed();
    error WithdrawAmountExceedsAvailable();
    error WithdrawDelayOutOfRange();
    error DepositCollectionFailed();
    error EmptyBatch();

    function multicall(bytes[] calldata data) external returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i; i < data.length; ++i) {
            (bool success, bytes memory result) = address(this).delegatecall(data[i]);
            if (!success) {
                assembly ("memory-safe") {
                    revert(add(result, 0x20), mload(result))
                }
            }
            results[i] = result;
        }
    }

    function deposit(ChannelConfig calldata config, uint128 amount, address collector, bytes calldata data) external {
        if (config.withdrawDelay < 15 minutes || config.withdrawDelay > 30 days) revert WithdrawDelayOutOfRange();
        if (config.payer == address(0) || config.receiver == address(0) || amount == 0) revert InvalidChannel();
        bytes32 id = getChannelId(config);
        uint256 held = Token(config.token).balanceOf(address(this));
        channels[id].balance += amount;
        Collector(collector).collect(config.payer, config.token, amount, id, data);
        if (Token(config.token).balanceOf(address(this)) != held + amount) revert DepositCollectionFailed();
    }

    function claimWithSignature(VoucherClaim[] calldata rows, bytes calldata signature) external {
        if (rows.length == 0) revert EmptyBatch();
        address authorizer = rows[0].voucher.channel.receiverAuthorizer;
        bytes memory entries;
        for (uint256 i; i < rows.length; ++i) {
            VoucherClaim calldata row = rows[i];
            if (row.voucher.channel.receiverAuthorizer != authorizer) revert InvalidChannel();
            bytes32 id = getChannelId(row.voucher.channel);
            bytes32 entry = keccak256(
                abi.encode(keccak256(bytes(ENTRY)), id, row.voucher.maxClaimableAmount, row.totalClaimed)
            );
            entries = bytes.concat(entries, entry);
            _claim(id, row);
        }
        bytes32 batchType = keccak256(bytes(string.concat("ClaimBatch(ClaimEntry[] claims)", ENTRY)));
        if (_recover(keccak256(abi.encode(batchType, keccak256(entries))), signature) != authorizer) {
            revert InvalidSignature();
        }
    }

    /// A sum that was claimed before changes nothing.
    function _claim(bytes32 id, VoucherClaim calldata row) private {
        ChannelConfig calldata config = row.voucher.channel;
        Funds storage funds = channels[id];
        uint128 total = row.totalClaimed;
        if (total <= funds.totalClaimed) return;
        if (total > row.voucher.maxClaimableAmount) revert ClaimExceedsCeiling();
        if (total > funds.balance) revert ClaimExceedsBalance();
        bytes32 hash = keccak256(abi.encode(keccak256(bytes(VOUCHER)), id, row.voucher.maxClaimableAmount));
        if (_recover(hash, row.signature) != config.payerAuthorizer) revert InvalidSignature();
        receivers[config.receiver][config.token].totalClaimed += total - funds.totalClaimed;
        funds.totalClaimed = total;
    }

    function settle(address receiver, address token) external {
        Income storage income = receivers[receiver][token];
        uint128 amount = income.totalClaimed - income.totalSettled;
        income.totalSettled = income.totalClaimed;
        if (amount > 0) require(Token(token).transfer(receiver, amount));
    }

    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external {
        bytes32 id = _ofCaller(config);
        if (pendingWithdrawals[id].initiatedAt != 0) revert WithdrawalAlreadyPending();
        if (amount > channels[id].balance - channels[id].totalClaimed) revert WithdrawAmountExceedsAvailable();
        pendingWithdrawals[id] = Withdrawal(amount, uint40(block.timestamp));
    }

    /// The payer gets what was not claimed meanwhile.
    function finalizeWithdraw(ChannelConfig calldata config) external {
        bytes32 id = _ofCaller(config);
        Withdrawal memory asked = pendingWithdrawals[id];
        if (asked.initiatedAt == 0) revert WithdrawalNotPending();
        if (block.timestamp < uint256(asked.initiatedAt) + config.withdrawDelay) revert WithdrawDelayNotElapsed();
        uint128 left = channels[id].balance - channels[id].totalClaimed;
        uint128 amount = asked.amount < left ? asked.amount : left;
        delete pendingWithdrawals[id];
        channels[id].balance -= amount;
        if (amount > 0) require(Token(config.token).transfer(config.payer, amount));
    }

    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return _digest(keccak256(abi.encode(keccak256(bytes(CONFIG)), config)));
    }

    function _ofCaller(ChannelConfig calldata config) private view returns (bytes32) {
        if (msg.sender != config.payer && msg.sender != config.payerAuthorizer) revert InvalidChannel();
        return getChannelId(config);
    }

    function _digest(bytes32 structHash) private view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("x402 Batch Settlement"),
                keccak256("1"),
                block.chainid,
                address(this)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function _recover(bytes32 structHash, bytes calldata signature) private view returns (address signer) {
        if (signature.length != 65 || uint256(bytes32(signature[32:64])) > type(uint256).max / 2) return address(0);
        signer = ecrecover(_digest(structHash), uint8(signature[64]), bytes32(signature), bytes32(signature[32:64]));
        if (signer == address(0)) revert InvalidSignature();
    }
}

/// Collects deposits by ERC-3009 for the contract that calls it; the authorization's nonce names the channel.
contract TestCollector {
    address private constant CHANNELS = 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003;

    error OnlyChannels();

    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external {
        if (msg.sender != CHANNELS) revert OnlyChannels();
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) =
            abi.decode(data, (uint256, uint256, uint256, bytes));
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        Token(token).receiveWithAuthorization(payer, address(this), amount, validAfter, validBefore, nonce, signature);
        require(Token(token).transfer(CHANNELS, amount));
    }
}
